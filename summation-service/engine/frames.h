// The actions that the engine returns, and functions for the keys of partitions in frames.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::engine {

// A frame for one worker. Connection::send() fills the header's checksums.
struct Send {
  uint32_t worker = 0;
  wire::Header header;
  Buffer payload;
};

// Actions for the caller, and what the engine has done. The engine appends to it. The caller carries the actions out,
// clears them and passes them again.
struct Actions {
  std::vector<Send> sends;
  bool has_contributed = false;  // a contribution was accepted
  bool has_summed = false;       // a sum was made

  void clear() {
    sends.clear();
    has_contributed = has_summed = false;
  }
};

// The fields by which a frame names its job and its sender.
struct Identity {
  uint64_t job = 0;   // job_number()
  uint32_t self = 0;  // the summer's member index
};

// Returns the header of a frame that this summer sends while the plan of `epoch` is in force.
inline wire::Header make_header(const Identity& identity, uint32_t epoch, wire::FrameType type,
                                const wire::PartitionKey& key) {
  wire::Header header;
  header.type = type;
  header.job = identity.job;
  header.epoch = epoch;
  header.sender = identity.self;
  header.tensor = key.tensor;
  header.partition = key.partition;
  header.step = key.step;
  return header;
}

inline wire::PartitionKey key_of(const wire::Header& header) { return {header.step, header.tensor, header.partition}; }

// Returns the key of the partition with this index in the plan.
inline wire::PartitionKey key_of(const plan::Plan& plan, uint32_t index, uint64_t step) {
  const uint32_t tensor = plan.partitions[index].tensor;
  return {step, tensor, index - plan.first_partition[tensor]};
}

}  // namespace gleaner::engine
