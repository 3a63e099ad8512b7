#include "common/ranks/near_groups.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/ranks/levels.h"
#include "common/ranks/linkage.h"
#include "common/ranks/rank_map.h"

namespace gleaner::ranks {
namespace {

constexpr uint32_t kFewGroups = 32;   // up to so many are always tried, if each has two hosts in the mean
constexpr size_t kRefined = 24;       // starts from which hosts move
constexpr uint32_t kManyHosts = 128;  // above, average linkage is precise, and the other starts would take seconds
constexpr size_t kRefinedOfMany = 4;
constexpr double kLongestEmbedded = 1.25;  // of a distance, in medians: a single measurement may be far off

// A partition of hosts.
struct Partition {
  std::vector<uint32_t> group_of;
  uint32_t groups = 0;

  std::vector<uint32_t> sizes() const {
    std::vector<uint32_t> sizes(groups, 0);
    for (const uint32_t group : group_of) ++sizes[group];
    return sizes;
  }
};

// Numbers groups in the order of their first hosts, without empty ones.
Partition ordered(std::span<const uint32_t> group_of) {
  std::map<uint32_t, uint32_t> number;
  Partition made;
  for (const uint32_t group : group_of) {
    made.group_of.push_back(number.try_emplace(group, static_cast<uint32_t>(number.size())).first->second);
  }
  made.groups = static_cast<uint32_t>(number.size());
  return made;
}

Groups to_groups(const Partition& partition) {
  Groups groups(partition.groups);
  for (uint32_t host = 0; host < partition.group_of.size(); ++host) groups[partition.group_of[host]].push_back(host);
  return groups;
}

// The descriptions of partitions of `hosts` hosts, in nats: the number of groups, their sizes, which are even (they
// differ by one at most) in half of all networks, and one of the partitions with these sizes.
class PartitionNats {
 public:
  explicit PartitionNats(uint32_t hosts) : log_factorial_(hosts + 1, 0) {
    for (uint32_t i = 1; i <= hosts; ++i) log_factorial_[i] = log_factorial_[i - 1] + std::log(i);
  }

  double log_factorial(uint32_t number) const { return log_factorial_[number]; }
  // Returns the logarithm of the number of ways to choose `some` of all hosts.
  double of_choice(uint32_t some) const {
    return log_factorial_.back() - log_factorial_[some] - log_factorial_[hosts() - some];
  }
  // Sizes may be 0 for groups that do not exist. Sorts them.
  double of_sizes(std::vector<uint32_t>& sizes) const {
    std::ranges::sort(sizes, std::greater());
    uint32_t groups = 0, alike = 0;
    double partitions = log_factorial_.back();
    for (size_t i = 0; i < sizes.size() && sizes[i] > 0; ++i) {
      alike = i > 0 && sizes[i] == sizes[i - 1] ? alike + 1 : 1;
      partitions -= log_factorial_[sizes[i]] + std::log(alike);
      ++groups;
    }
    if (groups < 2) return 0;
    // About C(hosts - 1, groups - 1) / groups! ways to write the number of hosts as a sum of sizes.
    const double sums = log_factorial_[hosts() - 1] - log_factorial_[groups - 1] - log_factorial_[hosts() - groups] -
                        log_factorial_[groups];
    const bool even = sizes.front() - sizes[groups - 1] <= 1;
    return std::log(hosts()) + std::log(2) + (even ? 0 : std::max(0.0, sums)) + partitions;
  }

 private:
  uint32_t hosts() const { return static_cast<uint32_t>(log_factorial_.size() - 1); }

  std::vector<double> log_factorial_;
};

// An explanation of all distances.
struct Explanation {
  Partition partition;
  Levels levels;
  double nats = 0;
};

class Explainer {
 public:
  explicit Explainer(const LogDistances& distances) : distances_(distances), partitions_(distances.hosts()) {}

  Explanation one() const {
    const Fit fit = fit_levels(distances_, [](uint32_t, uint32_t) { return true; });
    return {ordered(std::vector<uint32_t>(distances_.hosts(), 0)), fit.levels, fit.nats + of_numbers(2)};
  }

  // Returns the best explanation by slow hosts. They have the longest mean distances; the others are near.
  Explanation slow() const {
    const uint32_t hosts = distances_.hosts();
    std::vector<double> mean(hosts, 0);
    const Levels levels = one().levels;
    for (uint32_t a = 0; a < hosts; ++a) {
      for (uint32_t b = 0; b < hosts; ++b) {
        const double most = 4 * levels.deviation;
        if (a != b) mean[a] += std::clamp(distances_.at(a, b), levels.near - most, levels.near + most);
      }
    }
    std::vector<uint32_t> order = identity(hosts);
    std::ranges::stable_sort(order, {}, [&](uint32_t host) { return mean[host]; });
    std::vector<uint32_t> counts;  // of fast hosts
    for (uint32_t fast = 2; fast < hosts; ++fast) counts.push_back(fast);
    // Where slow hosts begin, the means have a gap.
    std::ranges::stable_sort(counts, {}, [&](uint32_t fast) { return mean[order[fast - 1]] - mean[order[fast]]; });
    if (counts.size() > kFewGroups) counts.resize(kFewGroups);
    Explanation best{.nats = std::numeric_limits<double>::infinity()};
    for (const uint32_t fast : counts) {
      std::vector<bool> is_fast(hosts, false);
      for (uint32_t i = 0; i < fast; ++i) is_fast[order[i]] = true;
      const Fit fit = fit_levels(distances_, [&](uint32_t a, uint32_t b) { return is_fast[a] && is_fast[b]; });
      const double nats = fit.nats + partitions_.of_choice(fast) + std::log(hosts) + of_numbers(3);
      if (fit.levels.near < fit.levels.far && nats < best.nats) best = {one().partition, fit.levels, nats};
    }
    return best;
  }

  Explanation explain(Partition partition) const {
    const Fit fit =
        fit_levels(distances_, [&](uint32_t a, uint32_t b) { return partition.group_of[a] == partition.group_of[b]; });
    std::vector<uint32_t> sizes = partition.sizes();
    const double nats = fit.nats + partitions_.of_sizes(sizes) + of_numbers(3);
    return {std::move(partition), fit.levels, nats};
  }

  // Moves hosts and merges groups while the description gets shorter.
  Explanation refine(Explanation best) const;

  // Returns the sum of the probabilities of neighbours of an explanation, in those of the explanation.
  double neighbours(const Explanation& found) const;

 private:
  // Returns the description of levels and their deviation. Few pairs make it longer (McQuarrie and Tsai 1998, BICc).
  double of_numbers(uint32_t numbers) const {
    const auto pairs = static_cast<double>(distances_.pairs());
    return 0.5 * numbers * std::log(pairs) * pairs / std::max(0.5, pairs - numbers);
  }

  const LogDistances& distances_;
  const PartitionNats partitions_;
};

// The gains of each host in each group, while levels stay the same.
class Gains {
 public:
  Gains(const LogDistances& distances, const PartitionNats& partitions, const Explanation& from)
      : distances_(distances),
        partitions_(partitions),
        levels_(from.levels),
        group_of_(from.partition.group_of),
        sizes_(from.partition.sizes()),
        gains_(sizes_.size(), std::vector<double>(distances.hosts(), 0)) {
    for (uint32_t host = 0; host < distances.hosts(); ++host) add(host, group_of_[host], 1);
  }

  const std::vector<uint32_t>& group_of() const { return group_of_; }
  uint32_t groups() const { return static_cast<uint32_t>(sizes_.size()); }
  uint32_t size(uint32_t group) const { return sizes_[group]; }

  // Returns by how much the description gets shorter if a host moves to another group, which may be a new one.
  double of_move(uint32_t host, uint32_t to) const {
    const uint32_t from = group_of_[host];
    return (to == groups() ? 0 : gains_[to][host]) - gains_[from][host] + of_sizes(from, to);
  }

  double of_merge(uint32_t a, uint32_t b) const {
    double gain = of_sizes(a, b, sizes_[a]);
    for (uint32_t host = 0; host < group_of_.size(); ++host) {
      if (group_of_[host] == a) gain += gains_[b][host];
    }
    return gain;
  }

  // Two hosts of different groups change places.
  double of_exchange(uint32_t a, uint32_t b) const {
    const uint32_t of_a = group_of_[a], of_b = group_of_[b];
    return gains_[of_b][a] - gains_[of_a][a] + gains_[of_a][b] - gains_[of_b][b] -
           2 * levels_.gain(distances_.at(a, b));
  }

  void move(uint32_t host, uint32_t to) {
    if (to == groups()) {
      sizes_.push_back(0);
      gains_.emplace_back(distances_.hosts(), 0);
    }
    of_sizes_.clear();
    add(host, group_of_[host], -1);
    --sizes_[group_of_[host]];
    group_of_[host] = to;
    ++sizes_[to];
    add(host, to, 1);
  }

  void merge(uint32_t a, uint32_t b) {
    for (uint32_t host = 0; host < group_of_.size(); ++host) {
      if (group_of_[host] == a) move(host, b);
    }
  }

 private:
  // Returns by how much the description of the sizes gets shorter if a host moves. Moves between groups of the same two
  // sizes make the same difference.
  double of_sizes(uint32_t from, uint32_t to) const {
    const uint32_t there = to == groups() ? 0 : sizes_[to];
    const auto [known, is_new] = of_sizes_.try_emplace({sizes_[from], there}, 0);
    if (is_new) known->second = of_sizes(from, to, 1);
    return known->second;
  }

  // Returns by how much the description of the sizes gets shorter if hosts move.
  double of_sizes(uint32_t from, uint32_t to, uint32_t hosts) const {
    std::vector<uint32_t> sizes = sizes_;
    const double before = partitions_.of_sizes(sizes);
    sizes = sizes_;
    if (to == sizes.size()) sizes.push_back(0);
    sizes[from] -= hosts;
    sizes[to] += hosts;
    return before - partitions_.of_sizes(sizes);
  }

  void add(uint32_t host, uint32_t group, double sign) {
    for (uint32_t other = 0; other < distances_.hosts(); ++other) {
      if (other != host) gains_[group][other] += sign * levels_.gain(distances_.at(host, other));
    }
  }

  const LogDistances& distances_;
  const PartitionNats& partitions_;
  const Levels levels_;
  std::vector<uint32_t> group_of_, sizes_;
  std::vector<std::vector<double>> gains_;  // by group, then host: with all other hosts of the group
  mutable std::map<std::pair<uint32_t, uint32_t>, double> of_sizes_;  // of moves between groups of two sizes
};

constexpr double kLeastGain = 1e-9;

void move_hosts(Gains& gains, uint32_t hosts) {
  bool moved = true;
  for (int sweep = 0; moved && sweep < 50; ++sweep) {
    moved = false;
    for (uint32_t host = 0; host < hosts; ++host) {
      const uint32_t from = gains.group_of()[host];
      uint32_t best = from;
      double most = kLeastGain;
      const uint32_t targets = gains.groups() + (gains.size(from) > 1 ? 1 : 0);
      for (uint32_t to = 0; to < targets; ++to) {
        if (to == from || (to < gains.groups() && gains.size(to) == 0)) continue;
        const double gain = gains.of_move(host, to);
        if (gain <= most) continue;
        most = gain;
        best = to;
      }
      if (best == from) continue;
      gains.move(host, best);
      moved = true;
    }
  }
}

// Exchanges hosts while that gains.
void exchange_hosts(Gains& gains, uint32_t hosts) {
  bool moved = true;
  for (int sweep = 0; moved && sweep < 50; ++sweep) {
    moved = false;
    for (uint32_t a = 0; a < hosts; ++a) {
      for (uint32_t b = 0; b < a; ++b) {
        const uint32_t of_a = gains.group_of()[a], of_b = gains.group_of()[b];
        if (of_a == of_b || gains.of_exchange(a, b) <= kLeastGain) continue;
        gains.move(a, of_b);
        gains.move(b, of_a);
        moved = true;
      }
    }
  }
}

// Merges the two groups that gain most, if any do.
bool merge_groups(Gains& gains) {
  double most = kLeastGain;
  std::pair<uint32_t, uint32_t> best;
  for (uint32_t a = 0; a < gains.groups(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (gains.size(a) == 0 || gains.size(b) == 0) continue;
      const double gain = gains.of_merge(a, b);
      if (gain <= most) continue;
      most = gain;
      best = {a, b};
    }
  }
  if (most <= kLeastGain) return false;
  gains.merge(best.first, best.second);
  return true;
}

Explanation Explainer::refine(Explanation best) const {
  for (int round = 0; round < 10; ++round) {
    if (best.levels.near >= best.levels.far) return best;
    Gains gains(distances_, partitions_, best);
    bool merged = true;
    while (merged) {
      move_hosts(gains, distances_.hosts());
      exchange_hosts(gains, distances_.hosts());
      merged = false;
      while (merge_groups(gains)) merged = true;
    }
    Partition moved = ordered(gains.group_of());
    if (moved.groups < 2 || moved.group_of == best.partition.group_of) return best;
    Explanation next = explain(std::move(moved));
    if (next.nats >= best.nats) return best;
    best = std::move(next);
  }
  return best;
}

double Explainer::neighbours(const Explanation& found) const {
  const Gains gains(distances_, partitions_, found);
  double sum = 0;
  const auto is_alone = [&](uint32_t host) { return gains.size(gains.group_of()[host]) == 1; };
  for (uint32_t host = 0; host < distances_.hosts(); ++host) {
    if (is_alone(host)) continue;  // a move to another group is a merge, and one to a new group changes nothing
    for (uint32_t to = 0; to <= gains.groups(); ++to) {
      if (to != found.partition.group_of[host]) sum += std::exp(gains.of_move(host, to));
    }
  }
  for (uint32_t a = 0; a < gains.groups(); ++a) {
    for (uint32_t b = 0; b < a; ++b) sum += std::exp(gains.of_merge(a, b));
  }
  for (uint32_t a = 0; a < distances_.hosts(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      if (gains.group_of()[a] == gains.group_of()[b] || (is_alone(a) && is_alone(b))) continue;
      sum += std::exp(gains.of_exchange(a, b));
    }
  }
  return sum;
}

Partition to_partition(const Groups& groups, uint32_t hosts) {
  std::vector<uint32_t> group_of(hosts);
  for (uint32_t group = 0; group < groups.size(); ++group) {
    for (const uint32_t host : groups[group]) group_of[host] = group;
  }
  return ordered(group_of);
}

// Returns partitions from which to search.
absl::StatusOr<std::vector<Partition>> starts_of(const Distances& distances) {
  const Distances embeddable = limited(distances);
  const uint32_t hosts = distances.hosts();
  Embedding embedding;
  if (hosts <= kManyHosts) {
    GLN_ASSIGN_OR_RETURN(embedding, embed(embeddable, {}));
  }
  const Linkage linkage(embeddable);
  const uint32_t most = std::min(hosts / 2, std::max(kFewGroups, 2 * balanced_group_count(hosts)));
  std::vector<Partition> starts;
  for (uint32_t count = 2; count <= most; ++count) {
    starts.push_back(ordered(linkage.cut(count)));
    if (hosts > kManyHosts) continue;
    for (const double elasticity : {1.0, 2.0}) {
      GLN_ASSIGN_OR_RETURN(const Groups groups, group(embedding, {.groups = count, .elasticity = elasticity}));
      starts.push_back(to_partition(groups, hosts));
    }
  }
  return starts;
}

}  // namespace

absl::StatusOr<NearGroups> near_groups(const Distances& distances) {
  const uint32_t hosts = distances.hosts();
  if (hosts < 3) return NearGroups{{identity(hosts)}, 1};
  GLN_ASSIGN_OR_RETURN(const std::vector<Partition> starts, starts_of(distances));
  const LogDistances logs(distances);
  const Explainer explainer(logs);
  std::vector<Explanation> begun, all = {explainer.one(), explainer.slow()};
  for (const Partition& start : starts) begun.push_back(explainer.explain(start));
  std::ranges::stable_sort(begun, {}, &Explanation::nats);
  begun.resize(std::min(begun.size(), hosts > kManyHosts ? kRefinedOfMany : kRefined));
  std::set<std::vector<uint32_t>> known;
  for (Explanation& start : begun) {
    Explanation refined = explainer.refine(std::move(start));
    if (refined.levels.near < refined.levels.far && known.insert(refined.partition.group_of).second) {
      all.push_back(std::move(refined));
    }
  }
  const auto best = std::ranges::min_element(all, {}, &Explanation::nats);
  double others = 0;
  for (const Explanation& each : all) {
    if (&each != &*best) others += std::exp(best->nats - each.nats);
  }
  if (best->partition.groups > 1) others = std::max(others, explainer.neighbours(*best));
  return NearGroups{to_groups(best->partition), 1 / (1 + others)};
}

absl::StatusOr<SureGroups> sure_groups(const Distances& distances) {
  GLN_ASSIGN_OR_RETURN(NearGroups found, near_groups(distances));
  const Partition partition = to_partition(found.groups, distances.hosts());
  std::vector<double> near, far;
  for (uint32_t a = 0; a < distances.hosts(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      (partition.group_of[a] == partition.group_of[b] ? near : far).push_back(distances.at(a, b));
    }
  }
  const bool distinct = !far.empty() && upper_median(std::move(far)) >= kLeastContrast * upper_median(std::move(near));
  SureGroups made{{identity(distances.hosts())}, distinct && found.confidence < kLeastConfidence};
  if (distinct && !made.unsure) made.groups = std::move(found.groups);
  return made;
}

Distances limited(const Distances& distances) {
  std::vector<double> all;
  for (uint32_t a = 0; a < distances.hosts(); ++a) {
    for (uint32_t b = 0; b < a; ++b) all.push_back(distances.at(a, b));
  }
  const double most = kLongestEmbedded * upper_median(std::move(all));
  Distances limited = distances;
  for (uint32_t a = 0; a < distances.hosts(); ++a) {
    for (uint32_t b = 0; b < distances.hosts(); ++b) limited.at(a, b) = std::min(limited.at(a, b), most);
  }
  return limited;
}

Groups improve_by_exchanges(const Distances& distances, Groups groups) {
  const LogDistances logs(distances);
  const Explainer explainer(logs);
  const PartitionNats partitions(distances.hosts());
  Explanation found = explainer.explain(to_partition(groups, distances.hosts()));
  const Partition first = found.partition;
  // The groups may be bad, so the first levels are those of the shortest distances, as many as are within groups.
  std::vector<double> all;
  size_t within = 0;
  for (uint32_t a = 0; a < logs.hosts(); ++a) {
    for (uint32_t b = 0; b < a; ++b) {
      all.push_back(logs.at(a, b));
      within += first.group_of[a] == first.group_of[b] ? 1 : 0;
    }
  }
  if (within == 0 || within == all.size()) return groups;
  const auto longest_near = all.begin() + static_cast<std::ptrdiff_t>(within - 1);
  std::ranges::nth_element(all, longest_near);
  found.levels = fit_levels(logs, [&](uint32_t a, uint32_t b) { return logs.at(a, b) <= *longest_near; }).levels;
  for (int round = 0; round < 10 && found.levels.near < found.levels.far; ++round) {
    Gains gains(logs, partitions, found);
    exchange_hosts(gains, distances.hosts());
    if (gains.group_of() == found.partition.group_of) break;
    Explanation next = explainer.explain({gains.group_of(), found.partition.groups});
    if (next.nats >= found.nats) break;
    found = std::move(next);
  }
  return to_groups(ordered(found.partition.group_of));
}

}  // namespace gleaner::ranks
