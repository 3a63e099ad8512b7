// The strategies by which the workers of a job can sum a tensor, each with its modelled time. Pure.
//
// Model of a schedule. Tensors are cut into partitions, which follow each other through a strategy. Their times are
// simulated (schedule_times.h). A schedule with too many messages for that has a closed form: a tensor of m bytes in
// partitions of p bytes takes the time of one partition alone, and the time in which the rest follows:
//
//   t(m) = latency + alone · min(m, p) + max(stream, processor / p, (latency + alone · p) / window) · max(0, m - p)
//
// Latency and `alone` are those of the schedule's α–β cost (common/collective/cost.h). `stream` is the time that the
// busiest channel needs for all its messages, and `processor` that of the slowest processor for the messages of a
// partition. The window is that of the runtime (plan::schedule_limits()): so many bytes of partitions are in flight at
// a time.
//
// Model of summers. A contribution and a result are two messages one after the other; owner_times.h has the rest.
//
// Types. Partial sums of a narrow type (common/base/accumulator.h) travel in its accumulator, complete sums in the type
// itself, and contributions in one of the two, as plan::Encoding says. So a strategy has three models.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/accumulator.h"
#include "common/collective/schedule.h"
#include "common/collective/spec.h"
#include "common/plan/partitioner.h"
#include "common/plan/plan.h"
#include "common/strategy/owner_times.h"
#include "common/strategy/rank_maps.h"
#include "common/strategy/schedule_times.h"
#include "common/topology/network.h"

namespace gleaner::strategy {

// Copies share what they have simulated, so they and their original belong to one thread at a time.
struct Model {
  double latency_seconds = 0;
  double alone_seconds_per_byte = 0;
  double stream_seconds_per_byte = 0;
  double processor_seconds = 0;
  // Bytes for each byte of a partition: those of the largest message, and of a contribution.
  double message_bytes = 1;
  double push_bytes = 1;
  std::shared_ptr<const OwnerTimes> owners;  // null: a schedule
  std::shared_ptr<ScheduleTimes> schedule;   // null: owners, or too many messages to simulate
  double factor = 1;                         // by which the times of `owners` or `schedule` are multiplied
  double link_bits_per_second = 0;           // of the slowest worker; decides how many partitions are in flight

  // Returns the time of a tensor in partitions of this size.
  double seconds(double bytes, double partition_bytes) const;
  // Returns the time of a tensor that the planner cuts into partitions of at most `partition_bytes`, and whose owners
  // have at least `least_bytes` each.
  double seconds(double bytes, double partition_bytes, double least_bytes) const;
  // Returns the time for each byte of a tensor in very many partitions of this size.
  double stream_seconds(double partition_bytes) const;
  // Multiplies all times.
  void multiply(double by);
  // Returns whether the messages for partitions of this size are no larger than plan::kMaxPartitionBytes.
  bool fits(double partition_bytes) const;
};

struct Candidate {
  std::optional<collective::Spec> schedule;  // none: summers
  Model model;                               // for types of one width, and blocks
  Model narrow_model;                        // for types of 16 bits
  Model narrow_model_with_wide_pushes;       // for types of 16 bits whose contributions are fp32
  plan::ScheduleCut cut;                     // of a schedule
  std::optional<MapTimes> mapped;            // of a schedule with a rank map or masters by map_ranks()

  bool is_by_summers() const { return !schedule.has_value(); }
  const Model& model_of(const plan::Encoding& types) const {
    if (!is_16_bit(types.result)) return model;
    return types.contribution == types.result ? narrow_model : narrow_model_with_wide_pushes;
  }
  // Returns whether the strategy is a choice for tensors of the type. Partial sums of blocks travel in fp32, in 4 to
  // 700 times their bytes, so schedules with partial sums are none for them.
  bool serves(DataType type) const { return !is_block(type) || is_by_summers() || !cut.has_partial_sums; }
};

// Returns what a schedule does with a partition.
plan::ScheduleCut cut_of(const collective::Schedule& schedule);

// Returns the name of the strategy: "summers", "ring", or "blueconnect 3,2,2".
std::string name_of(const Candidate& candidate);

// Returns the candidates for n = `workers` workers, which are hosts 0 to n - 1 of the network, and CPU summers, which
// are the hosts after them; summers come first. The others are every algorithm that serves n ranks: bcube with its
// default radix, blueconnect with the factorizations of n that are fastest by its Eq. 7 (the best 8 for large tensors
// and the best 4 for small ones, of those with equal steps the one with fewest stages), and, if the workers are in
// racks (rack_times.h), racks and two-level with these groups. A schedule has the ranks of its entry in `mapped`
// (rank_maps.h); without one, worker i has rank i, and groups are consecutive workers. InvalidArgument: there are fewer
// hosts than members or no worker, or as plan::bound_with_uplinks().
absl::StatusOr<std::vector<Candidate>> candidates(const topology::Network& network, uint32_t workers, uint32_t summers,
                                                  std::span<const MappedSpec> mapped = {});

// Returns the latency of the longest path between a worker, which are hosts 0 to `workers` - 1, and a member, which are
// hosts 0 to `members` - 1.
double farthest_latency(const topology::Network& network, uint32_t workers, uint32_t members);

// Returns the candidate of one schedule for these workers, whose ranks are as the schedule says. InvalidArgument: the
// schedule does not serve them.
absl::StatusOr<Candidate> candidate_of(const topology::Network& network, uint32_t workers,
                                       const collective::Spec& schedule);

// Returns the candidate of summers. Errors: as candidates().
absl::StatusOr<Candidate> candidate_of_summers(const topology::Network& network, uint32_t workers, uint32_t summers);

// Returns the times of the candidates for a tensor in partitions of this size.
std::vector<double> seconds_of(std::span<const Candidate> candidates, double bytes, double partition_bytes,
                               const plan::Encoding& types = {});

// A tensor that a job is going to add to its plan.
struct NewTensor {
  uint64_t bytes = 0;
  plan::Encoding types = {};
  uint64_t by_default = 0;  // plan::default_partition_bytes()
  uint64_t asked = 0;       // PartitionOptions::partition_bytes
};

// Returns the most bytes of a partition of the tensor if this candidate sums it. Without a size that is asked for, the
// default fits the candidate: plan::sliced_partition_bytes().
uint64_t partition_bytes_of(const Candidate& candidate, const NewTensor& tensor);

// Returns the times of the candidates for a new tensor that is planned alone.
std::vector<double> seconds_of_new(std::span<const Candidate> candidates, const NewTensor& tensor);

// Returns the index of the least time; of equal ones the first. Requires one candidate.
size_t fastest(std::span<const double> seconds);

// A strategy takes the place of another one, and a schedule that of summers, only if it is faster by this factor.
inline constexpr double kNeededGain = 1.1;

// Returns the index of the candidate that should sum a tensor: the fastest one, but summers, the first candidate, if
// they are nearly as fast (kNeededGain), since they also survive the loss of a summer and need no equal links.
size_t best(std::span<const double> seconds);

}  // namespace gleaner::strategy
