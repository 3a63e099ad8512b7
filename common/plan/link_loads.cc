#include "common/plan/link_loads.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/collective/cost.h"
#include "common/topology/paths.h"

namespace gleaner::plan {
namespace {

// Counts the routes to and from one owner, by channel.
class RouteCounter {
 public:
  explicit RouteCounter(const topology::Topology& topology) : paths_(topology), counts_(topology.channel_count()) {}

  void count(uint32_t from, uint32_t to, uint32_t LinkLoads::Routes::*direction) {
    path_.clear();
    paths_.append_path(from, to, collective::flow_between(from, to), path_);
    for (const uint32_t channel : path_) {
      LinkLoads::Routes& routes = counts_[channel];
      if (routes.pushes + routes.results == 0) used_.push_back(channel);
      ++(routes.*direction);
    }
  }

  // Moves the counts to `by_channel`, as those of this owner.
  void take(uint32_t owner, std::vector<std::vector<LinkLoads::Routes>>& by_channel) {
    for (const uint32_t channel : used_) {
      const LinkLoads::Routes counted = std::exchange(counts_[channel], {});
      by_channel[channel].push_back({owner, counted.pushes, counted.results});
    }
    used_.clear();
  }

 private:
  const topology::Paths paths_;
  std::vector<LinkLoads::Routes> counts_;  // by channel
  std::vector<uint32_t> used_, path_;
};

LinkLoads::Load load_of(const std::vector<LinkLoads::Routes>& routes, std::span<const double> owned) {
  LinkLoads::Load load;
  for (const LinkLoads::Routes& each : routes) {
    if (each.owner >= owned.size()) break;  // owners ascend
    load.pushes += each.pushes * owned[each.owner];
    load.results += each.results * owned[each.owner];
  }
  return load;
}

}  // namespace

absl::StatusOr<LinkLoads> LinkLoads::make(const topology::Topology& topology, uint32_t workers, uint32_t members) {
  LinkLoads loads;
  loads.tree_ = LinkTree::find(topology, workers, members);
  if (loads.tree_.has_value()) {
    loads.list_branches();
    return loads;
  }
  if (members > kMaxRoutedMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat("several paths lead from host to host, so the routes of all pairs are counted, which is done for ",
                     kMaxRoutedMembers, " members at most, not for ", members,
                     "; give fewer members, or a tree, such as racks:RxH with the uplinks of each rack together"));
  }
  loads.count_routes(topology, workers, members);
  return loads;
}

void LinkLoads::list_branches() {
  for (size_t i = 1; i < tree_->branches().size(); ++i) {
    const Branch& branch = tree_->branches()[i];
    links_.push_back({branch.link, branch.bits_per_second, branch.bits_per_second});
  }
}

void LinkLoads::count_routes(const topology::Topology& topology, uint32_t workers, uint32_t members) {
  RouteCounter counter(topology);
  std::vector<std::vector<Routes>> by_channel(topology.channel_count());
  for (uint32_t owner = 0; owner < members; ++owner) {
    for (uint32_t worker = 0; worker < workers; ++worker) {
      if (worker == owner) continue;
      counter.count(worker, owner, &Routes::pushes);
      counter.count(owner, worker, &Routes::results);
    }
    counter.take(owner, by_channel);
  }
  for (uint32_t link = 0; link < topology.links().size(); ++link) {
    std::vector<Routes>& there = by_channel[size_t{2} * link];
    std::vector<Routes>& back = by_channel[size_t{2} * link + 1];
    if (there.empty() && back.empty()) continue;
    links_.push_back({link, topology.bits_per_second(2 * link), topology.bits_per_second(2 * link + 1)});
    routes_.push_back(std::move(there));
    routes_.push_back(std::move(back));
  }
}

std::vector<LinkLoads::LinkLoad> LinkLoads::of(std::span<const double> owned) const {
  std::vector<LinkLoad> loads;
  loads.reserve(links_.size());
  if (!tree_.has_value()) {
    for (size_t i = 0; i < links_.size(); ++i) {
      loads.push_back({load_of(routes_[2 * i], owned), load_of(routes_[2 * i + 1], owned)});
    }
    return loads;
  }
  std::vector<double> behind(tree_->branches().size(), 0);
  for (uint32_t member = 0; member < owned.size(); ++member) behind[tree_->branch_of(member)] = owned[member];
  tree_->add_up(behind);
  for (size_t i = 1; i < behind.size(); ++i) {
    // Contributions of the workers behind the link leave for the owners elsewhere, and results go the other way.
    const double leaving = tree_->branches()[i].workers * (behind[0] - behind[i]);
    const double coming = (tree_->workers() - tree_->branches()[i].workers) * behind[i];
    loads.push_back({{leaving, coming}, {coming, leaving}});
  }
  return loads;
}

}  // namespace gleaner::plan
