// Functions that check frames from workers against the plan, and a plan against the memory limit. Errors name the
// worker, the tensor and the expected value.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"
#include "summation-service/engine/memory_budget.h"

namespace gleaner::engine {

// Returns a description such as "tensor conv1.weight partition 3 step 12".
std::string describe(const plan::Plan& plan, const wire::PartitionKey& key);

// Checks that the plan has the partition that `key` names.
absl::Status check_exists(const plan::Plan& plan, uint32_t worker, const wire::PartitionKey& key);

// Checks that member `self` owns the partition. The partition must exist.
absl::Status check_owner(const plan::Plan& plan, uint32_t self, uint32_t worker, const wire::PartitionKey& key);

// Checks that a kPush has the size and the type of a contribution (Plan::push_bytes(), Plan::encoding()), that a kHand
// has those of an answer (Plan::answer_bytes(), the tensor's type), and that both have an op that this tensor allows.
// The partition must exist.
absl::Status check_elements(const plan::Plan& plan, uint32_t worker, const wire::Header& header, const Buffer& payload);

// Checks that a sum of the largest partition that member `self` owns fits into the memory cap, beside one of each other
// group of workers. ResourceExhausted otherwise.
absl::Status check_memory(const plan::Plan& plan, uint32_t self, const MemoryBudget& memory);

// Checks that the payload of a kAck or kRelease is a whole number of keys.
absl::Status check_keys(const plan::Plan& plan, uint32_t worker, const wire::Header& header, const Buffer& payload);

}  // namespace gleaner::engine
