// Copies of gradients between GPU and CPU memory, as a stage of each worker machine before and after the network.
//
// Gleaner sums tensors in CPU memory, so each of a worker's g local ranks copies its M bytes of gradient from its GPU,
// and the result back: g·M bytes each way and step. The machine has a bandwidth for all its copies of one direction,
// and both directions work at the same time. This is BytePS's "brute-force copy" (§4.2.1, Eq. 8 with x = 1): its ranks
// do not sum between GPUs before they copy.
//
// A step takes at least as long as its slowest stage: each partition is copied while others travel, as in BytePS's
// pipeline (§6.1). This neglects the copies of the first and the last partition. A step takes at most the sum of its
// stages: all partitions are copied before the first one leaves, and all results after the last one has arrived.
#pragma once

#include <cstdint>
#include <string>

namespace gleaner::plan {

struct CopyStage {
  double bytes_per_second = 0;    // of a machine's copies, each way
  double bytes = 0;               // that a worker copies each way in a step
  double seconds = 0;             // of these copies
  double overlapped_seconds = 0;  // step time if copies and network overlap
  double added_seconds = 0;       // step time if they follow each other
  double network_seconds = 0;     // step time without copies

  // Returns whether the copies limit a step that overlaps them with the network. Then neither faster links nor more
  // summers help.
  bool binds() const { return seconds > network_seconds; }
  // Returns the least bandwidth whose copies hide behind the network, in bytes per second; 0: nothing moves there.
  double hiding_bytes_per_second() const { return network_seconds > 0 ? bytes / network_seconds : 0; }
};

// Returns the stage of workers with `local_ranks` GPUs each, whose step takes `network_seconds` without copies.
// `bytes_per_second` must be above 0.
CopyStage copy_stage(double bytes_per_second, uint64_t gradient_bytes, uint32_t local_ranks, double network_seconds);

// Returns sentences about the stage, in the form of an explanation's lines.
std::string to_text(const CopyStage& stage);

}  // namespace gleaner::plan
