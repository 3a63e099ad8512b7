#include "common/strategy/owner_times.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

#include "common/base/status_macros.h"
#include "common/plan/uplinks.h"

namespace gleaner::strategy {
namespace {

constexpr double kProbeBytes = 1 << 30;

// The seconds for which a link is busy, with contributions of `push_ratio` bytes for each byte of a result.
class Busy {
 public:
  Busy(const plan::LinkLoads::Link& link, double push_ratio)
      : there_(8 / link.there_bits_per_second), back_(8 / link.back_bits_per_second), push_ratio_(push_ratio) {}

  // Returns the time of the busier direction.
  double seconds(const plan::LinkLoads::LinkLoad& load) const {
    return std::max(there_ * (push_ratio_ * load.there.pushes + load.there.results),
                    back_ * (push_ratio_ * load.back.pushes + load.back.results));
  }
  // Returns the time of contributions, and then of results.
  double seconds_in_turn(const plan::LinkLoads::LinkLoad& load) const {
    return push_ratio_ * std::max(there_ * load.there.pushes, back_ * load.back.pushes) +
           std::max(there_ * load.there.results, back_ * load.back.results);
  }

 private:
  double there_, back_;  // seconds per byte
  double push_ratio_;
};

}  // namespace

absl::StatusOr<OwnerTimes> OwnerTimes::make(const topology::Topology& topology, uint32_t workers, uint32_t summers,
                                            double push_ratio) {
  GLN_ASSIGN_OR_RETURN(plan::LinkLoads loads, plan::link_loads(topology, workers, summers));
  GLN_ASSIGN_OR_RETURN(const std::vector<double> shares,
                       plan::shares_with_uplinks(topology, loads, workers, summers, push_ratio));
  OwnerTimes made(std::move(loads));
  made.push_ratio_ = push_ratio;
  made.workers_ = workers;
  made.overheads_.assign(workers + summers, 0);
  for (uint32_t member = 0; member < workers + summers; ++member) {
    if (shares[member] > 0) made.owners_.push_back({shares[member], member});
  }
  std::ranges::stable_sort(made.owners_, std::ranges::greater(), &Owner::share);
  // With partitions of no size, nothing waits for a first one.
  made.links_seconds_per_byte_ = made.seconds(kProbeBytes, 1e-9, 0) / kProbeBytes;
  for (uint32_t member = 0; member < workers + summers; ++member) {
    made.overheads_[member] = topology.hosts()[member].overhead_seconds;
  }
  return made;
}

double OwnerTimes::processor_seconds(std::span<const double> partitions) const {
  const double all = std::reduce(partitions.begin(), partitions.end());
  double slowest = 0;
  for (uint32_t member = 0; member < partitions.size(); ++member) {
    // An owner has two messages for each of its partitions with each other worker, and a worker with each other owner.
    const bool is_worker = member < workers_;
    const double as_owner = partitions[member] * (workers_ - (is_worker ? 1 : 0));
    const double as_worker = is_worker ? all - partitions[member] : 0;
    slowest = std::max(slowest, 2 * (as_owner + as_worker) * overheads_[member]);
  }
  return slowest;
}

double OwnerTimes::stream_seconds_per_byte(double partition_bytes) const {
  std::vector<double> partitions(overheads_.size(), 0);  // for each byte of the tensor
  for (const Owner& owner : owners_) partitions[owner.member] = owner.share / partition_bytes;
  return std::max(links_seconds_per_byte_, processor_seconds(partitions));
}

double OwnerTimes::seconds(double bytes, double partition_bytes, double least_bytes) const {
  if (!(bytes > 0)) return 0;
  const double partition = bytes / std::ceil(bytes / partition_bytes);  // partitions have equal sizes
  // By member: the bytes that it owns, and those of its first partition.
  std::vector<double> all(overheads_.size(), 0), first(overheads_.size(), 0);
  // By member: the partitions that it owns, and whether it owns one.
  std::vector<double> partitions(overheads_.size(), 0), owns(overheads_.size(), 0);
  double left = bytes;
  for (const Owner& owner : owners_) {
    double owned = std::max(owner.share * bytes, least_bytes);
    if (left - owned < least_bytes) owned = left;
    all[owner.member] = owned;
    first[owner.member] = std::min(owned, partition);
    partitions[owner.member] = std::max(1.0, owned / partition);
    owns[owner.member] = 1;
    left -= owned;
    if (!(left > 0)) break;
  }
  const std::vector<plan::LinkLoads::LinkLoad> of_all = loads_.of(all), of_first = loads_.of(first);
  const double first_messages = processor_seconds(owns);
  const double other_messages = processor_seconds(partitions) - first_messages;
  double slowest = 0;
  for (size_t i = 0; i < of_all.size(); ++i) {
    const Busy busy(loads_.links()[i], push_ratio_);
    const double rest = std::max(busy.seconds(of_all[i]) - busy.seconds(of_first[i]), other_messages);
    slowest = std::max(slowest, busy.seconds_in_turn(of_first[i]) + rest);
  }
  // A worker's processor takes the tensor over, and hands the result back.
  const double slowest_worker = *std::max_element(overheads_.begin(), overheads_.begin() + workers_);
  return slowest + first_messages + 2 * slowest_worker;
}

}  // namespace gleaner::strategy
