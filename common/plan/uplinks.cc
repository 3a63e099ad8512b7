#include "common/plan/uplinks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::plan {
namespace {

using topology::Topology;

// A link with everything behind it, as seen from the root.
struct Branch {
  uint32_t link = 0;
  double bits_per_second = 0;  // the slower direction
  double workers = 0;          // behind the link
  bool is_member = false;      // whether the node at the link's end is a member
  bool owns = false;           // whether a member is behind the link
  std::vector<uint32_t> children;
  // The fractions of the vector that members behind the link may own together.
  double least = 0, most = 1;
};

// The tree of branches, whose root is a switch, or the only host. Children come after their parents.
class Tree {
 public:
  static absl::StatusOr<Tree> make(const Topology& topology, uint32_t workers, uint32_t members);

  // Returns whether all links can carry their bytes within `seconds_per_bit` seconds for each bit of the vector, and
  // sets the limits of each branch.
  bool fits(double seconds_per_bit);
  // Distributes the vector within the limits that the last call of fits() has set. Returns the fraction of each branch.
  std::vector<double> distribute() const;

  // Returns the fraction behind each branch when host h owns owned[h] of `total` bytes.
  std::vector<double> fractions_of(const std::vector<uint64_t>& owned, double total) const;
  // Returns the fraction that a host owns itself.
  double own(uint32_t host, const std::vector<double>& fraction) const;

  // Returns the seconds for which a branch's link is busy for each bit of the vector.
  double busy(const Branch& branch, double fraction) const {
    return (branch.workers + (workers_ - 2 * branch.workers) * fraction) / branch.bits_per_second;
  }
  const std::vector<Branch>& branches() const { return branches_; }
  uint32_t branch_of(uint32_t host) const { return branch_of_[host]; }
  double slowest_link() const;

 private:
  void limit(Branch& branch, double seconds_per_bit) const;

  double workers_ = 0;
  std::vector<Branch> branches_;     // the first is the root, without a link
  std::vector<uint32_t> branch_of_;  // by node
};

absl::StatusOr<Tree> Tree::make(const Topology& topology, uint32_t workers, uint32_t members) {
  Tree tree;
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
      if (tree.branch_of_[next.node] != UINT32_MAX) {
        return absl::InvalidArgumentError(absl::StrCat(
            "several paths lead to '", topology.name(next.node),
            "', so no link's traffic follows from the shares alone; the bound needs a tree, such as star:N "
            "or racks:RxH ('gleaner sim' takes every topology)"));
      }
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
void Tree::limit(Branch& branch, double seconds_per_bit) const {
  const double room = seconds_per_bit * branch.bits_per_second - branch.workers;
  const double slope = workers_ - 2 * branch.workers;
  if (slope > 0) branch.most = std::min(branch.most, room / slope);
  if (slope < 0) branch.least = std::max(branch.least, room / slope);
  if (slope == 0 && room < 0) branch.most = -1;
}

bool Tree::fits(double seconds_per_bit) {
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

std::vector<double> Tree::distribute() const {
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

std::vector<double> Tree::fractions_of(const std::vector<uint64_t>& owned, double total) const {
  std::vector<double> fraction(branches_.size(), 0);
  for (size_t host = 0; host < owned.size(); ++host) {
    fraction[branch_of_[host]] = static_cast<double>(owned[host]) / total;
  }
  for (size_t i = branches_.size(); i-- > 0;) {
    for (const uint32_t child : branches_[i].children) fraction[i] += fraction[child];
  }
  return fraction;
}

double Tree::own(uint32_t host, const std::vector<double>& fraction) const {
  const uint32_t branch = branch_of_[host];
  double own = fraction[branch];
  for (const uint32_t child : branches_[branch].children) own -= fraction[child];
  return std::max(own, 0.0);
}

double Tree::slowest_link() const {
  double slowest = INFINITY;
  for (const Branch& branch : branches_) {
    if (branch.owns && branch.bits_per_second > 0) slowest = std::min(slowest, branch.bits_per_second);
  }
  return slowest;
}

absl::Status check_members(const Topology& topology, uint32_t workers, uint64_t members) {
  if (workers == 0) return absl::InvalidArgumentError("a job needs at least one worker");
  if (members <= topology.host_count()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the topology has ", topology.host_count(), " hosts, and the job ",
                                                 members, " members; each needs a host of its own"));
}

}  // namespace

absl::StatusOr<UplinkBound> bound_with_uplinks(const Topology& topology, uint32_t workers, uint32_t summers,
                                               double bytes) {
  const uint64_t members = uint64_t{workers} + summers;
  GLN_RETURN_IF_ERROR(check_members(topology, workers, members));
  GLN_ASSIGN_OR_RETURN(Tree tree, Tree::make(topology, workers, static_cast<uint32_t>(members)));
  UplinkBound bound;
  bound.shares.assign(members, 0);
  if (workers == 1) {  // its own summer owns everything
    bound.shares[0] = 1;
    return bound;
  }
  // No link carries more than 2·n times the vector, so this is enough; fits() is monotonic.
  double low = 0, high = 2.0 * workers / tree.slowest_link();
  for (int i = 0; i < 200 && high - low > 1e-15 * high; ++i) {
    const double middle = low + (high - low) / 2;
    (tree.fits(middle) ? high : low) = middle;
  }
  tree.fits(high);
  bound.seconds = high * bytes * 8;
  const std::vector<double> fraction = tree.distribute();
  for (uint32_t member = 0; member < members; ++member) bound.shares[member] = tree.own(member, fraction);
  for (size_t i = 1; i < tree.branches().size(); ++i) {
    const auto& branch = tree.branches()[i];
    if (branch.owns && tree.busy(branch, fraction[i]) >= high * (1 - 1e-9)) bound.limits.push_back(branch.link);
  }
  std::sort(bound.limits.begin(), bound.limits.end());
  return bound;
}

absl::StatusOr<BusiestLink> busiest_link(const Topology& topology, uint32_t workers,
                                         const std::vector<uint64_t>& owned) {
  GLN_RETURN_IF_ERROR(check_members(topology, workers, owned.size()));
  GLN_ASSIGN_OR_RETURN(const Tree tree, Tree::make(topology, workers, static_cast<uint32_t>(owned.size())));
  const double total = static_cast<double>(std::accumulate(owned.begin(), owned.end(), uint64_t{0}));
  BusiestLink busiest;
  if (workers == 1 || total == 0) return busiest;
  const std::vector<double> fraction = tree.fractions_of(owned, total);
  for (size_t i = 1; i < tree.branches().size(); ++i) {
    const Branch& branch = tree.branches()[i];
    const double seconds = branch.owns ? tree.busy(branch, fraction[i]) * total * 8 : 0;
    if (seconds > busiest.seconds) busiest = {branch.link, seconds};
  }
  return busiest;
}

absl::StatusOr<LinkTree> link_tree(const Topology& topology, uint32_t workers, uint32_t summers) {
  const uint64_t members = uint64_t{workers} + summers;
  GLN_RETURN_IF_ERROR(check_members(topology, workers, members));
  GLN_ASSIGN_OR_RETURN(const Tree tree, Tree::make(topology, workers, static_cast<uint32_t>(members)));
  const auto last = static_cast<uint32_t>(tree.branches().size() - 1);
  LinkTree made;
  made.links.resize(tree.branches().size());
  for (uint32_t i = 0; i <= last; ++i) {
    const Branch& branch = tree.branches()[i];
    LinkTree::Link& link = made.links[last - i];  // children come after their parents in the tree
    link.bits_per_second = i == 0 ? INFINITY : branch.bits_per_second;
    link.workers = branch.workers;
    for (const uint32_t child : branch.children) made.links[last - child].above = last - i;
  }
  made.links[last].above = last;
  for (uint32_t member = 0; member < members; ++member) made.link_of.push_back(last - tree.branch_of(member));
  return made;
}

absl::StatusOr<Fleet> fleet_of(const Topology& topology, uint32_t workers, uint32_t summers) {
  GLN_RETURN_IF_ERROR(check_members(topology, workers, uint64_t{workers} + summers));
  Fleet fleet;
  for (uint32_t host = 0; host < workers + summers; ++host) {
    double out = 0, in = 0;
    for (const Topology::Neighbour& next : topology.neighbours(host)) {
      out += topology.bits_per_second(next.channel);
      in += topology.bits_per_second(next.channel ^ 1);
    }
    (host < workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second).push_back(std::min(out, in));
  }
  return fleet;
}

}  // namespace gleaner::plan
