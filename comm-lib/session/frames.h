// Functions that make the headers of the frames that a worker sends.
#pragma once

#include <cstdint>

#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::session {

// The fields by which a frame names its job and its sender.
struct Identity {
  uint64_t job = 0;     // wire::job_number() of the job's name
  uint32_t worker = 0;  // member index of this worker
};

// Returns the header of a frame that this worker sends while the plan of `epoch` is in force.
inline wire::Header make_header(const Identity& identity, uint32_t epoch, wire::FrameType type, const Buffer& payload) {
  wire::Header header;
  header.type = type;
  header.job = identity.job;
  header.epoch = epoch;
  header.sender = identity.worker;
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  return header;
}

// Returns the key of the partition with this index in the plan.
inline wire::PartitionKey key_of(const plan::Plan& plan, uint32_t index, uint64_t step) {
  const uint32_t tensor = plan.partitions[index].tensor;
  return {step, tensor, index - plan.first_partition[tensor]};
}

// Returns the header of a frame about a partition.
inline wire::Header make_header(const Identity& identity, const plan::Plan& plan, wire::FrameType type,
                                const wire::PartitionKey& key, const Buffer& payload) {
  wire::Header header = make_header(identity, plan.epoch, type, payload);
  header.tensor = key.tensor;
  header.partition = key.partition;
  header.step = key.step;
  return header;
}

}  // namespace gleaner::session
