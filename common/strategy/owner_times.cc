#include "common/strategy/owner_times.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/plan/model.h"

namespace gleaner::strategy {
namespace {

constexpr double kProbeBytes = 1 << 30;

// The bytes of contributions that a link carries out of its subtree and into it. Results go the other way.
struct Load {
  double out = 0;
  double in = 0;

  // The load of the busier direction, with contributions of `push_ratio` bytes for each byte of a result.
  double busy(double push_ratio) const { return std::max(push_ratio * out + in, out + push_ratio * in); }
  // The load of contributions, and then of results.
  double in_turn(double push_ratio) const { return (push_ratio + 1) * std::max(out, in); }
};

// Bytes of a tensor, or of the owners behind a link.
struct OwnerBytes {
  double all = 0;
  double first = 0;  // in the first partitions of their owners

  void add(const OwnerBytes& other) {
    all += other.all;
    first += other.first;
  }
};

// Returns the shares of the planner if all members are at one switch, and else those that suit the links between
// switches.
absl::StatusOr<std::vector<double>> shares_of(const topology::Topology& topology, uint32_t workers, uint32_t summers,
                                              double push_ratio) {
  if (topology.switches().size() > 1) {
    GLN_ASSIGN_OR_RETURN(plan::UplinkBound bound, plan::bound_with_uplinks(topology, workers, summers, kProbeBytes));
    return std::move(bound.shares);
  }
  GLN_ASSIGN_OR_RETURN(plan::Fleet fleet, plan::fleet_of(topology, workers, summers));
  fleet.push_ratio = push_ratio;
  return plan::shares(fleet);
}

}  // namespace

absl::StatusOr<OwnerTimes> OwnerTimes::make(const topology::Topology& topology, uint32_t workers, uint32_t summers,
                                            double push_ratio) {
  OwnerTimes made;
  made.workers_ = workers;
  made.push_ratio_ = push_ratio;
  GLN_ASSIGN_OR_RETURN(made.tree_, plan::link_tree(topology, workers, summers));
  GLN_ASSIGN_OR_RETURN(const std::vector<double> shares, shares_of(topology, workers, summers, push_ratio));
  for (size_t member = 0; member < shares.size(); ++member) {
    if (shares[member] > 0) made.owners_.push_back({shares[member], made.tree_.link_of[member]});
  }
  std::ranges::stable_sort(made.owners_, std::ranges::greater(), &Owner::share);
  // With partitions of no size, nothing waits for a first one.
  made.stream_seconds_per_byte_ = made.seconds(kProbeBytes, 1e-9, 0) / kProbeBytes;
  return made;
}

double OwnerTimes::seconds(double bytes, double partition_bytes, double least_bytes) const {
  if (!(bytes > 0)) return 0;
  const double partition = bytes / std::ceil(bytes / partition_bytes);  // partitions have equal sizes
  std::vector<OwnerBytes> behind(tree_.links.size());
  OwnerBytes tensor{bytes};
  double left = bytes;
  for (const Owner& owner : owners_) {
    double owned = std::max(owner.share * bytes, least_bytes);
    if (left - owned < least_bytes) owned = left;
    const OwnerBytes own{owned, std::min(owned, partition)};
    behind[owner.link].add(own);
    tensor.first += own.first;
    left -= owned;
    if (!(left > 0)) break;
  }
  double slowest = 0;
  for (size_t i = 0; i < tree_.links.size(); ++i) {
    const plan::LinkTree::Link& link = tree_.links[i];
    const double others = workers_ - link.workers;
    const Load all{link.workers * (tensor.all - behind[i].all), others * behind[i].all};
    const Load first{link.workers * (tensor.first - behind[i].first), others * behind[i].first};
    const double load = first.in_turn(push_ratio_) + all.busy(push_ratio_) - first.busy(push_ratio_);
    slowest = std::max(slowest, load * 8 / link.bits_per_second);
    if (link.above != i) behind[link.above].add(behind[i]);
  }
  return slowest;
}

}  // namespace gleaner::strategy
