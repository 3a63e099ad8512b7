// Checks frames from workers against the plan. Errors name the worker, the tensor and the expected value.
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

// That the key names a partition of this plan.
absl::Status check_exists(const plan::Plan& plan, uint32_t worker, const wire::PartitionKey& key);

// That member `self` owns the partition, which exists.
absl::Status check_owner(const plan::Plan& plan, uint32_t self, uint32_t worker, const wire::PartitionKey& key);

// That a kPush or kHand of an existing partition has its size and its tensor's type, and an op that this type has.
absl::Status check_numbers(const plan::Plan& plan, uint32_t worker, const wire::Header& header, const Buffer& payload);

// That the payload of a kAck or kRelease is a whole number of keys.
absl::Status check_keys(const plan::Plan& plan, uint32_t worker, const wire::Header& header, const Buffer& payload);

}  // namespace gleaner::engine
