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
  uint64_t partition_bytes = 0;  // kMinPartitionBytes .. kMaxPartitionBytes; 0: default_partition_bytes()
};

inline constexpr uint64_t kMinPartitionBytes = 8;  // one element of the widest type

// What a partition's size weighs, in bytes. Larger than by_link: a late but urgent tensor waits long behind it. Larger
// than by_stream: a step waits longer for its first and last sums, n pushes to the slowest owner, than it gains by
// fewer headers and less work. Smaller than least: the wire waits for the CPU, or headers take more than 4 % of it.
struct PartitionLimits {
  double by_link = 0;    // 1.4 ms of the slowest worker's link, 22.4 ms / n where n is above 16; 8 KiB
  double by_stream = 0;  // sqrt((160 B + 10 us of the link) * what the slowest owner can move in a step / 2n)
  double least = 0;      // 100 us of the slowest worker's link or 64 KiB if that is less; 10 us of it, 4 KiB
};
PartitionLimits partition_limits(const Fleet& fleet, uint64_t total_bytes);

// The power of two next below by_link and by_stream, but no less than that of `least`, and at most kMaxPartitionBytes.
uint64_t default_partition_bytes(const Fleet& fleet, uint64_t total_bytes);

// How much a worker pushes before it has results, so that its link is never idle. All workers push a partition at about
// the same time, so until the last of them has its result n of it go into the owner's link, and n come out: 2n of the
// largest partition. At least 10 ms of the worker's link and 64 KiB; and what the link carries in a `round_trip` in
// seconds, of the path to the farthest owner. `asked` above 0 takes the place of all this. Rounded up to whole
// partitions of the largest size.
uint64_t window_bytes(const Plan& plan, uint32_t worker, uint64_t asked = 0, double round_trip = 0);

// Builds a plan of epoch 0 for these tensors in generation order. Members get the fleet's bandwidths and no address.
//
// A tensor is cut into even, element-aligned slices of at most partition_bytes. Each owner's last slice ends where it
// has its share of the whole, but is no shorter than 1/32 of a partition (of the default size, if that is less) or 1
// KiB: so the total is split closer than a partition, and a tensor that comes alone is spread over the owners. Owners
// of share 0 get nothing. InvalidArgument: fleet, tensors or partition size out of their limits, or more than
// kMaxPartitions. Cost: O(partitions * log(members)).
absl::StatusOr<Plan> make_plan(const Fleet& fleet, std::vector<Tensor> tensors, const PartitionOptions& options);

// The plan of `epoch` with the same members, the old partitions untouched, `added` tensors cut and assigned so that the
// whole stream stays balanced. `plan` must be valid.
absl::StatusOr<Plan> extend_plan(const Plan& plan, std::vector<Tensor> added, const PartitionOptions& options,
                                 uint32_t epoch);

// The plan of `epoch` with these members in place of its own, and owners that go with their bandwidths. Tensors stay
// cut as they are. `plan` must be valid, and `members` have the same workers.
enum class Reassign {
  kAll,   // every prefix of the stream is split in proportion to the shares within one partition
  kLost,  // only what belongs to members that are gone, to whoever lacks most of its share there: the rest goes on
};
Plan reassign(const Plan& plan, std::vector<Member> members, uint32_t epoch, Reassign which);

// The bandwidths of a plan's members, 0 for those that are not here.
Fleet fleet_of(const Plan& plan);

// Bytes each member's summer owns.
std::vector<uint64_t> owned_bytes(const Plan& plan);

}  // namespace gleaner::plan
