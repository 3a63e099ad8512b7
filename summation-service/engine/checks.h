// What a frame from a worker must look like, judged by the plan alone. Errors name the worker, the tensor and what was
// expected.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::engine {

// "tensor conv1.weight partition 3 step 12".
std::string describe(const plan::Plan& plan, const wire::PartitionKey& key);

// That the key names a partition of this plan which member `self` owns.
absl::Status check_key(const plan::Plan& plan, uint32_t self, uint32_t worker, const wire::PartitionKey& key);

// That a kPush has its partition's size and its tensor's type, and an op that this type has.
absl::Status check_push(const plan::Plan& plan, uint32_t self, uint32_t worker, const wire::Header& header,
                        const Buffer& payload);

// That a kAck's payload is a whole number of keys, at least one.
absl::Status check_ack_size(const plan::Plan& plan, uint32_t worker, const wire::Header& header, const Buffer& payload);

// Index in plan.partitions. Needs check_key().
inline uint32_t partition_index(const plan::Plan& plan, uint32_t tensor, uint32_t partition) {
  return plan.first_partition[tensor] + partition;
}

}  // namespace gleaner::engine
