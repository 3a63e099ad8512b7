#include "common/plan/link_tree.h"

#include <algorithm>
#include <cmath>

namespace gleaner::plan {

using topology::Topology;

std::optional<LinkTree> LinkTree::find(const Topology& topology, uint32_t workers, uint32_t members) {
  LinkTree tree;
  tree.workers_ = workers;
  tree.branch_of_.assign(topology.node_count(), UINT32_MAX);
  const uint32_t root = topology.switches().empty() ? 0 : topology.host_count();
  tree.branches_.push_back({});
  tree.branch_of_[root] = 0;
  std::vector<uint32_t> nodes = {root};  // by branch
  for (uint32_t parent = 0; parent < nodes.size(); ++parent) {
    for (const Topology::Neighbour& next : topology.neighbours(nodes[parent])) {
      const uint32_t link = next.channel / 2;
      if (parent != 0 && tree.branches_[parent].link == link) continue;
      if (tree.branch_of_[next.node] != UINT32_MAX) return std::nullopt;
      const uint32_t index = static_cast<uint32_t>(nodes.size());
      tree.branch_of_[next.node] = index;
      nodes.push_back(next.node);
      Branch& branch = tree.branches_.emplace_back();
      branch.link = link;
      branch.bits_per_second =
          std::min(topology.bits_per_second(next.channel), topology.bits_per_second(next.channel ^ 1));
      tree.branches_[parent].children.push_back(index);
    }
  }
  if (tree.branch_of_[0] == UINT32_MAX) return std::nullopt;  // the first switch has no path to the hosts
  for (uint32_t host = 0; host < members; ++host) {
    Branch& branch = tree.branches_[tree.branch_of_[host]];
    branch.is_member = branch.owns = true;
    if (host < workers) branch.workers += 1;
  }
  for (size_t i = tree.branches_.size(); i-- > 0;) {
    Branch& branch = tree.branches_[i];
    for (const uint32_t child : branch.children) {
      branch.workers += tree.branches_[child].workers;
      branch.owns |= tree.branches_[child].owns;
    }
  }
  return tree;
}

// Applies the limit of the branch's own link to the fractions that its members may own.
void LinkTree::limit(Branch& branch, double seconds_per_bit) const {
  const double room = seconds_per_bit * branch.bits_per_second - branch.workers;
  const double slope = workers_ - 2 * branch.workers;
  if (slope > 0) branch.most = std::min(branch.most, room / slope);
  if (slope < 0) branch.least = std::max(branch.least, room / slope);
  if (slope == 0 && room < 0) branch.most = -1;
}

bool LinkTree::fits(double seconds_per_bit) {
  for (size_t i = branches_.size(); i-- > 0;) {
    Branch& branch = branches_[i];
    branch.least = 0;
    branch.most = branch.is_member ? 1 : 0;
    for (const uint32_t child : branch.children) {
      branch.least += branches_[child].least;
      branch.most += branches_[child].most;
    }
    if (i != 0 && branch.owns) limit(branch, seconds_per_bit);
    if (branch.least > branch.most) return false;
  }
  return branches_[0].least <= 1 && branches_[0].most >= 1;
}

std::vector<double> LinkTree::distribute() const {
  std::vector<double> fraction(branches_.size(), 0);
  fraction[0] = 1;
  for (size_t i = 0; i < branches_.size(); ++i) {
    double least = 0, room = branches_[i].is_member ? 1 : 0;
    for (const uint32_t child : branches_[i].children) {
      least += branches_[child].least;
      room += branches_[child].most - branches_[child].least;
    }
    const double part = room > 0 ? std::clamp((fraction[i] - least) / room, 0.0, 1.0) : 0;
    for (const uint32_t child : branches_[i].children) {
      fraction[child] = branches_[child].least + part * (branches_[child].most - branches_[child].least);
    }
  }
  return fraction;
}

void LinkTree::add_up(std::vector<double>& owned) const {
  for (size_t i = branches_.size(); i-- > 0;) {
    for (const uint32_t child : branches_[i].children) owned[i] += owned[child];
  }
}

double LinkTree::own(uint32_t host, const std::vector<double>& fraction) const {
  const uint32_t branch = branch_of_[host];
  double own = fraction[branch];
  for (const uint32_t child : branches_[branch].children) own -= fraction[child];
  return std::max(own, 0.0);
}

double LinkTree::slowest_link() const {
  double slowest = INFINITY;
  for (const Branch& branch : branches_) {
    if (branch.owns && branch.bits_per_second > 0) slowest = std::min(slowest, branch.bits_per_second);
  }
  return slowest;
}

}  // namespace gleaner::plan
