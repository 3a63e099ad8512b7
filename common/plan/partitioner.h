// Cuts the gradient stream (all tensors in generation order) into partitions and assigns an owner to each. Every prefix
// of the stream, not only the whole stream, is split in proportion to the shares, to within one partition per owner. So
// each NIC is busy from the first byte to the last.
//
// The tensors that a schedule sums are a stream of their own, since their partitions do not pass owners. They have
// owners all the same, for a later plan without the schedule. How such a tensor is cut decides the bits of its sum, so
// the cut follows from the schedule, the tensor and the size of partitions alone: the fewest partitions of at most this
// size, which differ by at most one element. A default size follows from the workers' links and the tensor's bytes, not
// from summers or other tensors.
//
// The tensors of a group of workers are a stream of their own, too, for each group. Its shares are those of a job of
// the group's m workers and of all CPU summers, of whose bandwidth a group of m of n workers gets m/n. That is exact
// for groups of one size that divide the workers among them, as the replicas of HSDP do (docs/model.md).
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/model.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

// The use that a schedule (common/collective) makes of a partition, as far as the size of partitions follows from it.
struct ScheduleCut {
  // Into how many slices of mean size the schedule cuts a partition. Partitions of a default size are larger by this
  // factor.
  double slices = 1;
  uint32_t blocks = 1;           // the most contributions that one message holds
  bool has_partial_sums = true;  // partial sums travel, which for 16-bit types are fp32 (Encoding::partial)
};

struct PartitionOptions {
  // The most bytes of a partition's contribution or result, whichever is larger: kMinPartitionBytes to
  // kMaxPartitionBytes; 0: default_partition_bytes().
  uint64_t partition_bytes = 0;
  // By member, workers first: the fraction that each should own of the tensors of all workers, if not the shares of
  // model.h. They add up to 1.
  std::vector<double> shares;
  std::vector<ScheduleCut> schedules;  // by schedule of the plan; a schedule without an entry has the defaults
};

inline constexpr uint64_t kMinPartitionBytes = 8;  // one element of the widest type

// Limits on the default size of a partition, in bytes:
// - Above by_link, an urgent tensor that becomes ready late waits too long behind a partition that is being sent.
// - Above by_stream, a step loses more time than it gains: it waits longer for its first and last sums (each takes n
//   pushes to the slowest owner and n results from it) than it saves by fewer headers and less work.
// - Below by_overhead, the link waits for the CPU, or headers take more than 4 % of the link.
struct PartitionLimits {
  double by_link = 0;  // 1.4 ms of the slowest worker's link, or 22.4 ms / n for n above 16; at least 8 KiB
  // The square root of (160 B + 10 us of the slowest worker's link) * (bytes that the slowest owner can move in a step)
  // / 2n.
  double by_stream = 0;
  // The lesser of 64 KiB and 100 us of the slowest worker's link; at least 4 KiB and 10 us of that link.
  double by_overhead = 0;
};
PartitionLimits partition_limits(const Fleet& fleet, uint64_t total_bytes);

// Returns the lesser of by_link and by_stream, but at least by_overhead and at most kMaxPartitionBytes, rounded down to
// a power of two.
uint64_t default_partition_bytes(const Fleet& fleet, uint64_t total_bytes);

// Returns the least bytes of a slice that is cut shorter where its owner reaches its share (make_plan()), for
// partitions of `size` bytes: 1/32 of the size, or of the default size if that is less, but at least 1 KiB or the whole
// size.
uint64_t least_slice_bytes(uint64_t size, uint64_t by_default);

// Returns the default size of the partitions of a schedule that cuts each into `slices` slices of mean size: such
// slices have about `by_default` bytes, since they are what links carry and what urgent slices wait for. Rounded down
// to a power of two, and at most kMaxPartitionBytes.
uint64_t sliced_partition_bytes(uint64_t by_default, double slices);

// Returns the *window* of a worker: how many bytes it may have in flight over all owners, so that its link is never
// idle. All workers push a partition at about the same time. Until the last worker has its result, n partitions go into
// the owner's link and n results come out of it. So the window is 2n of the largest partition that owners sum, but at
// least 64 KiB and 10 ms of the worker's link. The bytes that the link carries in `round_trip` seconds are added; pass
// the round-trip time to the farthest owner. A nonzero `asked` replaces all this. The window is rounded up to a
// multiple of the largest partition.
uint64_t window_bytes(const Plan& plan, uint32_t worker, uint64_t asked = 0, double round_trip = 0);

// Returns how many bytes of partitions that schedules sum a worker may have in flight. Partitions follow each other
// through the steps of a schedule, so a few of them keep its links busy, and more only wait for each other: 4 of the
// largest partition, at least 64 KiB, and at least what the worker's link carries in 10 ms and the round trip. A
// nonzero `asked` replaces all this.
uint64_t schedule_window_bytes(const Plan& plan, uint32_t worker, uint64_t asked = 0, double round_trip = 0);

// Returns the window of a peer in schedules: how many bytes of slices, with headers of `header_bytes`, a worker may
// have sent to one other worker that has not confirmed them. That is what the worker's link carries in 10 ms and the
// round trip, and at least two of the largest partial sum. A nonzero `asked` replaces all this.
uint64_t peer_window_bytes(const Plan& plan, uint32_t worker, uint64_t header_bytes, uint64_t asked = 0,
                           double round_trip = 0);

// The limits by which schedules wait, in bytes: those of the two functions above.
struct ScheduleLimits {
  double in_flight = 0;
  double peer_window = 0;
};
// Returns the limits for partial sums of at most `largest` bytes and a worker with a link of `bits_per_second`.
ScheduleLimits schedule_limits(double largest, double bits_per_second, double header_bytes, double round_trip = 0);

// Builds a plan of epoch 0 for these tensors, which are in generation order, and for workers with `local_ranks` ranks
// each. Members get the fleet's bandwidths and no address. The plan's push ratio follows from its tensors and ranks,
// not from the fleet.
//
// A tensor is cut into equal, element-aligned slices whose contributions and results have at most partition_bytes
// (Plan::encoding()). A slice is cut shorter where its owner
// reaches its share of the whole stream. So the totals come closer to the shares than one partition, and a tensor that
// is planned alone is spread over the owners. Such a shorter slice has at least 1 KiB and at least 1/32 of
// partition_bytes (or of the default size if that is less). Owners with a share of 0 get nothing.
// InvalidArgument: the fleet, the tensors or the partition size are out of their limits, or the plan might have more
// than kMaxPartitions. Cost: O(partitions * log(members)).
absl::StatusOr<Plan> make_plan(const Fleet& fleet, std::vector<Tensor> tensors, const PartitionOptions& options,
                               uint32_t local_ranks = 1);

// Returns the plan of `epoch` with the same members, the same partitions, and those of the `added` tensors, whose
// owners are chosen so that the whole stream stays balanced. `plan` must be valid.
absl::StatusOr<Plan> extend_plan(const Plan& plan, std::vector<Tensor> added, const PartitionOptions& options,
                                 uint32_t epoch);

// Returns the plan of `epoch` with these members, and with owners chosen by their bandwidths. Partitions keep their
// offsets and sizes. `plan` must be valid, and `members` must have the same workers. `shares`: as in PartitionOptions.
enum class Reassign {
  // Deals all partitions anew, so that every prefix of the stream is split by the shares.
  kAll,
  // Moves only partitions of members that are gone: each goes to the member that lacks most of its share of the stream
  // up to there.
  kLost,
};
Plan reassign(const Plan& plan, std::vector<Member> members, uint32_t epoch, Reassign which,
              std::vector<double> shares = {});

// Returns the bandwidths of a plan's members, 0 for empty places and for summers on standby, and the push ratio over
// all tensors.
Fleet fleet_of(const Plan& plan);

// Returns the bytes that each member's summer owns.
std::vector<uint64_t> owned_bytes(const Plan& plan);

}  // namespace gleaner::plan
