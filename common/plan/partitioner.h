// Cuts the gradient stream into partitions and gives each an owner, such that every prefix of the stream, not only its
// end, is split in proportion to the shares within one partition. So each NIC is busy from the first byte to the last.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/model.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

struct PartitionOptions {
  uint64_t partition_bytes = 0;  // 0: sized in link time, see default_partition_bytes()
};

// About 0.7 ms of the slowest link, a power of two in [4 KiB, kMaxPartitionBytes], and not so large that n owners would
// get less than a few partitions each of `total_bytes`.
uint64_t default_partition_bytes(const Fleet& fleet, uint64_t total_bytes);

// Builds a plan of epoch 0 for these tensors in generation order. Members get the fleet's bandwidths and no address.
absl::StatusOr<Plan> make_plan(const Fleet& fleet, std::vector<Tensor> tensors, const PartitionOptions& options);

// The same members, the old partitions untouched, `added` tensors cut and assigned so that the whole stream stays
// balanced. Epoch and fence are the caller's to set.
absl::StatusOr<Plan> extend_plan(const Plan& plan, std::vector<Tensor> added, const PartitionOptions& options);

// Bytes each member's summer owns.
std::vector<uint64_t> owned_bytes(const Plan& plan);

}  // namespace gleaner::plan
