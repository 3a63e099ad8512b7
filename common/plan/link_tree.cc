#include "common/plan/link_tree.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gleaner::plan {

using topology::Topology;

LinkTree::LinkTree(std::vector<Branch> branches) : branches_(std::move(branches)) {
  for (size_t i = branches_.size(); i-- > 0;) {
    Branch& branch = branches_[i];
    branch.owns |= branch.is_member;
    if (i == 0) break;
    branches_[branch.parent].workers += branch.workers;
    branches_[branch.parent].owns |= branch.owns;
  }
}

std::optional<LinkTree> LinkTree::find(const Topology& topology, uint32_t workers, uint32_t members) {
  std::vector<uint32_t> branch_of(topology.node_count(), UINT32_MAX);
  const uint32_t root = topology.switches().empty() ? 0 : topology.host_count();
  std::vector<Branch> branches(1);
  branch_of[root] = 0;
  std::vector<uint32_t> nodes = {root};  // by branch
  for (uint32_t parent = 0; parent < nodes.size(); ++parent) {
    for (const Topology::Neighbour& next : topology.neighbours(nodes[parent])) {
      const uint32_t link = next.channel / 2;
      if (parent != 0 && branches[parent].link == link) continue;
      if (branch_of[next.node] != UINT32_MAX) return std::nullopt;
      branch_of[next.node] = static_cast<uint32_t>(nodes.size());
      nodes.push_back(next.node);
      Branch& branch = branches.emplace_back();
      branch.parent = parent;
      branch.link = link;
      branch.bits_per_second =
          std::min(topology.bits_per_second(next.channel), topology.bits_per_second(next.channel ^ 1));
    }
  }
  if (branch_of[0] == UINT32_MAX) return std::nullopt;  // the first switch has no path to the hosts
  for (uint32_t host = 0; host < members; ++host) {
    Branch& branch = branches[branch_of[host]];
    branch.is_member = true;
    if (host < workers) branch.workers = 1;
  }
  LinkTree tree(std::move(branches));
  tree.branch_of_ = std::move(branch_of);
  return tree;
}

// Applies the limit of one direction of the branch's own link to the fractions that its members may own. `pushes` and
// `results`: the bytes of the contributions of the workers behind the link, and of the sums that go the same way, for
// each byte of the vector.
void LinkTree::limit(Branch& branch, double seconds_per_bit, double pushes, double results) const {
  const double behind = branch.workers * pushes;
  const double room = seconds_per_bit * branch.bits_per_second - behind;
  const double slope = (workers() - branch.workers) * results - behind;
  if (slope > 0) branch.most = std::min(branch.most, room / slope);
  if (slope < 0) branch.least = std::max(branch.least, room / slope);
  if (slope == 0 && room < 0) branch.most = -1;
}

bool LinkTree::fits(double seconds_per_bit) {
  for (Branch& branch : branches_) {
    branch.least = 0;
    branch.most = branch.is_member ? 1 : 0;
  }
  for (size_t i = branches_.size(); i-- > 0;) {
    Branch& branch = branches_[i];
    if (i != 0 && branch.owns) {
      limit(branch, seconds_per_bit, push_ratio_, 1);
      if (push_ratio_ != 1) limit(branch, seconds_per_bit, 1, push_ratio_);
    }
    if (branch.least > branch.most) return false;
    if (i == 0) break;
    branches_[branch.parent].least += branch.least;
    branches_[branch.parent].most += branch.most;
  }
  return branches_[0].least <= 1 && branches_[0].most >= 1;
}

double LinkTree::least_seconds_per_bit(double most) {
  // No link carries more than 2·n times the vector, or r times as much, so this is enough; fits() is monotonic.
  double low = 0, high = std::min(most, 2 * std::max(1.0, push_ratio_) * workers() / slowest_link());
  if (!fits(high)) return std::numeric_limits<double>::infinity();
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  fits(high);
  return high;
}

std::vector<double> LinkTree::distribute() const {
  std::vector<double> least(branches_.size(), 0), room(branches_.size(), 0);
  for (size_t i = 0; i < branches_.size(); ++i) {
    room[i] += branches_[i].is_member ? 1 : 0;
    if (i == 0) continue;
    least[branches_[i].parent] += branches_[i].least;
    room[branches_[i].parent] += branches_[i].most - branches_[i].least;
  }
  std::vector<double> fraction(branches_.size(), 0);
  fraction[0] = 1;
  for (size_t i = 1; i < branches_.size(); ++i) {
    const Branch& branch = branches_[i];
    const uint32_t parent = branch.parent;
    const double part = room[parent] > 0 ? std::clamp((fraction[parent] - least[parent]) / room[parent], 0.0, 1.0) : 0;
    fraction[i] = branch.least + part * (branch.most - branch.least);
  }
  return fraction;
}

void LinkTree::add_up(std::vector<double>& owned) const {
  for (size_t i = branches_.size(); i-- > 1;) owned[branches_[i].parent] += owned[i];
}

std::vector<double> LinkTree::own(std::vector<double> fraction) const {
  std::vector<double> own = fraction;
  for (size_t i = 1; i < branches_.size(); ++i) own[branches_[i].parent] -= fraction[i];
  for (double& each : own) each = std::max(each, 0.0);
  return own;
}

double LinkTree::busy(const Branch& branch, double fraction) const {
  const double leaving = branch.workers * (1 - fraction), coming = (workers() - branch.workers) * fraction;
  return std::max(push_ratio_ * leaving + coming, leaving + push_ratio_ * coming) / branch.bits_per_second;
}

double LinkTree::slowest_link() const {
  double slowest = INFINITY;
  for (const Branch& branch : branches_) {
    if (branch.owns && branch.bits_per_second > 0) slowest = std::min(slowest, branch.bits_per_second);
  }
  return slowest;
}

}  // namespace gleaner::plan
