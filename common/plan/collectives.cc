#include "common/plan/collectives.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace gleaner::plan {
namespace {

double scatter_and_gather_seconds(const Fleet& fleet, double summers_bits_per_second, double reduced_bytes,
                                  double gathered_bytes) {
  const double n = fleet.n();
  if (n == 1) return 0;
  const auto [less, more] = std::minmax(reduced_bytes, gathered_bytes);
  const double one_worker = ((n - 1) * more + less) / (n * slowest_worker(fleet));
  const double all_links = (n - 1) * (reduced_bytes + gathered_bytes) /
                           (sum(fleet.worker_bits_per_second) + (n - 2) / n * summers_bits_per_second);
  return 8 * std::max(one_worker, all_links);
}

// Returns whether the first value is larger by more than rounding errors.
bool exceeds(double one, double other) { return one > other * (1 + 1e-12); }

}  // namespace

CollectiveBound all_reduce_bound(const Fleet& fleet, double bytes) {
  Fleet alone = fleet;
  alone.summer_bits_per_second.clear();
  const double seconds = bound_seconds(alone, bytes);
  const double least = fleet.n() == 1 ? 0 : 8 * bytes / slowest_worker(fleet);
  return {bound_seconds(fleet, bytes), seconds, exceeds(seconds, least)};
}

CollectiveBound scatter_or_gather_bound(const Fleet& fleet, double bytes) {
  const double n = fleet.n();
  const double seconds = (n - 1) / n * 8 * bytes / slowest_worker(fleet);
  return {seconds, seconds, false};
}

CollectiveBound scatter_and_gather_bound(const Fleet& fleet, double reduced_bytes, double gathered_bytes) {
  const double alone = scatter_and_gather_seconds(fleet, 0, reduced_bytes, gathered_bytes);
  const double least = scatter_and_gather_seconds(fleet, 1e300, reduced_bytes, gathered_bytes);
  const double summers = sum(fleet.summer_bits_per_second);
  return {scatter_and_gather_seconds(fleet, summers, reduced_bytes, gathered_bytes), alone, exceeds(alone, least)};
}

absl::StatusOr<CollectiveBound> hybrid_sharding_bound(const Fleet& fleet, double bytes, uint32_t replicas) {
  if (replicas == 0 || fleet.n() % replicas != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(replicas, " replicas do not divide ", fleet.n(), " workers; give a divisor of ", fleet.n()));
  }
  const uint32_t shards = fleet.n() / replicas;
  Fleet one_shard;
  one_shard.worker_bits_per_second.assign(replicas, slowest_worker(fleet));
  // Summers count by the sum of their bandwidths.
  const double summers = sum(fleet.summer_bits_per_second) / shards;
  if (summers > 0) one_shard.summer_bits_per_second.push_back(summers);
  return all_reduce_bound(one_shard, bytes / shards);
}

}  // namespace gleaner::plan
