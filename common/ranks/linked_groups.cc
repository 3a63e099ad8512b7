#include "common/ranks/linked_groups.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <numbers>
#include <optional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/ranks/levels.h"
#include "common/ranks/near_groups.h"
#include "common/ranks/rank_map.h"

namespace gleaner::ranks {
namespace {

constexpr double kStarts[] = {0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5};  // parts of pairs that are near
constexpr int kRounds = 60;
constexpr size_t kBins = 2000;
constexpr double kFewestOutliers = 0.001, kMostOutliers = 0.2;  // parts of the distances
constexpr int kMoves = 10;                                      // rounds in which hosts move

// Equally many logarithms of distances count as one: a value and their number.
struct Bin {
  double value = 0, count = 0;
};

std::vector<Bin> bins_of(std::span<const PairDistance> pairs) {
  std::vector<double> sorted;
  sorted.reserve(pairs.size());
  for (const PairDistance& pair : pairs) sorted.push_back(std::log(pair.distance));
  std::ranges::sort(sorted);
  const size_t each = sorted.size() / kBins + 1;
  std::vector<Bin> bins;
  for (size_t begin = 0; begin < sorted.size(); begin += each) {
    const size_t end = std::min(begin + each, sorted.size());
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += sorted[i];
    const auto count = static_cast<double>(end - begin);
    bins.push_back({sum / count, count});
  }
  return bins;
}

double density(double value, double level, double deviation) {
  const double error = (value - level) / deviation;
  return std::exp(-error * error / 2) / (deviation * std::sqrt(2 * std::numbers::pi));
}

// Two levels; a single one if near_part is 0.
struct Mixture {
  double near = 0, far = 0, deviation = 0;
  double near_part = 0;
  double outlier_part = kOutliers;
  double outlier_density = 0;
  double nats = 0;  // of all distances

  // Return the probability density that a near or a far distance has this value.
  double near_density(double value) const { return (1 - outlier_part) * density(value, near, deviation) + outliers(); }
  double far_density(double value) const { return (1 - outlier_part) * density(value, far, deviation) + outliers(); }
  double outliers() const { return outlier_part * outlier_density; }
};

// Fits the levels from a start, in which the distances have the given levels.
Mixture fit(const std::vector<Bin>& bins, Mixture mixture) {
  for (int round = 0; round <= kRounds; ++round) {
    double near = 0, near_sum = 0, far = 0, far_sum = 0, squares = 0, all = 0, near_pairs = 0;
    mixture.nats = 0;
    for (const Bin& bin : bins) {
      const double near_density = mixture.near_part * mixture.near_density(bin.value);
      const double far_density = (1 - mixture.near_part) * mixture.far_density(bin.value);
      const double sum = near_density + far_density;
      mixture.nats -= bin.count * std::log(sum);
      near_pairs += bin.count * near_density / sum;
      // Outliers tell nothing about the levels.
      const double is_near = bin.count * (near_density - mixture.near_part * mixture.outliers()) / sum;
      const double is_far = bin.count * (far_density - (1 - mixture.near_part) * mixture.outliers()) / sum;
      near += is_near;
      near_sum += is_near * bin.value;
      far += is_far;
      far_sum += is_far * bin.value;
      squares += (is_near + is_far) * bin.value * bin.value;
      all += bin.count;
    }
    if (round == kRounds) break;
    if (near > 0) mixture.near = near_sum / near;
    if (far > 0) mixture.far = far_sum / far;
    const double scatter = squares - mixture.near * near_sum - mixture.far * far_sum;
    mixture.deviation = std::max(kLeastDeviation, std::sqrt(std::max(0.0, scatter / std::max(1e-9, near + far))));
    mixture.near_part = near_pairs / all;
    mixture.outlier_part = std::clamp(1 - (near + far) / all, kFewestOutliers, kMostOutliers);
  }
  return mixture;
}

// Returns the levels if there are two.
std::optional<Mixture> two_levels(std::span<const PairDistance> pairs) {
  const std::vector<Bin> bins = bins_of(pairs);
  if (bins.size() < 4) return std::nullopt;
  const auto count = static_cast<double>(pairs.size());
  Mixture start{.deviation = kLeastDeviation,
                .outlier_density = 1 / std::max(kLeastDeviation, bins.back().value - bins.front().value)};
  double mean = 0, squares = 0;
  for (const Bin& bin : bins) mean += bin.value * bin.count / count;
  for (const Bin& bin : bins) squares += (bin.value - mean) * (bin.value - mean) * bin.count / count;
  start.deviation = std::max(kLeastDeviation, std::sqrt(squares));
  start.far = mean;
  const Mixture one = fit(bins, start);
  Mixture best = one;
  for (const double part : kStarts) {
    start.near_part = part;
    start.near = bins[static_cast<size_t>(part / 2 * static_cast<double>(bins.size()))].value;
    start.far = bins[static_cast<size_t>((1 + part) / 2 * static_cast<double>(bins.size()))].value;
    start.deviation = std::max(kLeastDeviation, std::min(std::sqrt(squares), (start.far - start.near) / 4));
    const Mixture found = fit(bins, start);
    if (found.nats < best.nats) best = found;
  }
  // The second level and its part are two numbers more.
  if (best.nats + std::log(count) >= one.nats || best.far - best.near < std::log(kLeastContrast)) return std::nullopt;
  return best;
}

using Evidence =
    std::vector<absl::flat_hash_map<uint32_t, double>>;  // by group, then group: the odds that they are one

// Joins groups while the distances between them say that they are one.
class Joiner {
 public:
  // `evidence`: between hosts. `least`: the odds from which on groups are joined.
  Joiner(const Evidence& evidence, double least) : least_(least), evidence_(evidence), members_(evidence.size()) {
    for (uint32_t host = 0; host < members_.size(); ++host) {
      members_[host] = {host};
      for (const auto& [other, odds] : evidence_[host]) {
        if (host < other) offer(odds, host, other);
      }
    }
  }

  // Returns the group of each host.
  std::vector<uint32_t> join() {
    while (!offers_.empty()) {
      const auto [odds, a, b] = offers_.top();
      offers_.pop();
      const auto found = evidence_[a].find(b);
      // Outdated offers are those of groups that have been joined, or whose evidence has changed since.
      if (found != evidence_[a].end() && found->second == odds) merge(a, b);
    }
    std::vector<uint32_t> group_of(members_.size());
    for (uint32_t group = 0; group < members_.size(); ++group) {
      for (const uint32_t host : members_[group]) group_of[host] = group;
    }
    return group_of;
  }

 private:
  void offer(double odds, uint32_t a, uint32_t b) {
    if (odds > least_) offers_.emplace(odds, std::min(a, b), std::max(a, b));
  }

  // Joins the group with less evidence to the other one.
  void merge(uint32_t a, uint32_t b) {
    if (evidence_[a].size() < evidence_[b].size()) std::swap(a, b);
    members_[a].insert(members_[a].end(), members_[b].begin(), members_[b].end());
    members_[b].clear();
    for (const auto& [other, odds] : evidence_[b]) {
      evidence_[other].erase(b);
      if (other == a) continue;
      const double all = evidence_[a][other] += odds;
      evidence_[other][a] = all;
      offer(all, a, other);
    }
    evidence_[b].clear();
  }

  const double least_;
  Evidence evidence_;
  std::vector<std::vector<uint32_t>> members_;                          // by group
  std::priority_queue<std::tuple<double, uint32_t, uint32_t>> offers_;  // odds and two groups
};

// Moves each host to the group that its own distances suggest most, until none moves: a wrong distance may have joined
// two hosts early.
void move_hosts(const Evidence& evidence, double least, std::vector<uint32_t>& group_of) {
  for (int round = 0; round < kMoves; ++round) {
    bool moved = false;
    for (uint32_t host = 0; host < evidence.size(); ++host) {
      std::map<uint32_t, double> odds_of;  // by group
      for (const auto& [other, odds] : evidence[host]) odds_of[group_of[other]] += odds;
      const double own = odds_of[group_of[host]];
      const auto best = std::ranges::max_element(odds_of, {}, [](const auto& entry) { return entry.second; });
      if (best->second <= std::max(own, least)) continue;
      group_of[host] = best->first;
      moved = true;
    }
    if (!moved) return;
  }
}

}  // namespace

Groups linked_groups(uint32_t hosts, std::span<const PairDistance> pairs) {
  const std::optional<Mixture> mixture = two_levels(pairs);
  if (!mixture.has_value()) return {identity(hosts)};
  Evidence evidence(hosts);
  for (const PairDistance& pair : pairs) {
    const double value = std::log(pair.distance);
    const double odds = std::log(mixture->near_density(value) / mixture->far_density(value));
    evidence[pair.a][pair.b] = evidence[pair.b][pair.a] = odds;
  }
  const double least = std::max(0.0, std::log((1 - mixture->near_part) / mixture->near_part));
  std::vector<uint32_t> group_of = Joiner(evidence, least).join();
  move_hosts(evidence, least, group_of);
  std::map<uint32_t, std::vector<uint32_t>> members;
  for (uint32_t host = 0; host < hosts; ++host) members[group_of[host]].push_back(host);
  Groups groups;
  for (auto& [group, hosts_of_group] : members) groups.push_back(std::move(hosts_of_group));
  std::ranges::sort(groups);
  return groups;
}

}  // namespace gleaner::ranks
