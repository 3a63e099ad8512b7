#include "common/ranks/grouping.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/ranks/random.h"

namespace gleaner::ranks {
namespace {

constexpr double kFar = std::numeric_limits<double>::infinity();

class KMeans {
 public:
  KMeans(const Embedding& embedding, const GroupingOptions& options, Random& random)
      : embedding_(embedding), groups_(options.groups), random_(random), group_of_(embedding.hosts) {
    const double each = static_cast<double>(embedding.hosts) / options.groups;
    least_ = std::max<uint32_t>(1, static_cast<uint32_t>(std::floor(each / options.elasticity + 1e-9)));
    most_ = static_cast<uint32_t>(std::ceil(each * options.elasticity - 1e-9));
  }

  void run() {
    choose_centres();
    for (int round = 0; round < 50; ++round) {
      const std::vector<uint32_t> before = group_of_;
      assign();
      if (round > 0 && group_of_ == before) break;
      move_centres();
    }
  }

  const std::vector<uint32_t>& group_of() const { return group_of_; }
  double sum_of_squares() const {
    double sum = 0;
    for (uint32_t host = 0; host < embedding_.hosts; ++host) sum += square(host, group_of_[host]);
    return sum;
  }
  uint32_t spread_of_sizes() const {
    return *std::max_element(sizes_.begin(), sizes_.end()) - *std::min_element(sizes_.begin(), sizes_.end());
  }

 private:
  double square(uint32_t host, uint32_t group) const {
    double sum = 0;
    for (uint32_t i = 0; i < embedding_.dimensions; ++i) {
      const double difference =
          embedding_.points[size_t{host} * embedding_.dimensions + i] - centres_[group * embedding_.dimensions + i];
      sum += difference * difference;
    }
    return sum;
  }

  void add_centre(uint32_t host) {
    const auto point = embedding_.points.begin() + size_t{host} * embedding_.dimensions;
    centres_.insert(centres_.end(), point, point + embedding_.dimensions);
  }

  // k-means++ (Arthur and Vassilvitskii 2007): each next centre is a host, drawn in proportion to its squared distance
  // to the nearest centre.
  void choose_centres() {
    std::vector<double> nearest(embedding_.hosts, kFar);
    add_centre(random_.below(embedding_.hosts));
    for (uint32_t group = 1; group < groups_; ++group) {
      double sum = 0;
      for (uint32_t host = 0; host < embedding_.hosts; ++host) {
        nearest[host] = std::min(nearest[host], square(host, group - 1));
        sum += nearest[host];
      }
      double drawn = random_.uniform() * sum;
      uint32_t chosen = 0;
      while (chosen + 1 < embedding_.hosts && (drawn -= nearest[chosen]) >= 0) ++chosen;
      add_centre(chosen);
    }
  }

  void assign() {
    sizes_.assign(groups_, 0);
    for (uint32_t host = 0; host < embedding_.hosts; ++host) {
      uint32_t best = 0;
      for (uint32_t group = 1; group < groups_; ++group) {
        if (square(host, group) < square(host, best)) best = group;
      }
      group_of_[host] = best;
      ++sizes_[best];
    }
    const auto over = [&](uint32_t group) { return sizes_[group] > most_; };
    const auto under = [&](uint32_t group) { return sizes_[group] < least_; };
    while (std::any_of(sizes_.begin(), sizes_.end(), [&](uint32_t size) { return size > most_; })) {
      shift(over, [&](uint32_t group) { return sizes_[group] < most_; });
    }
    while (std::any_of(sizes_.begin(), sizes_.end(), [&](uint32_t size) { return size < least_; })) {
      shift([&](uint32_t group) { return sizes_[group] > least_; }, under);
    }
  }

  // Moves one host along each edge of the cheapest chain from a group that gives to a group that takes. An edge from
  // one group to another costs what the cheapest move of a host between them adds to the sum of squares.
  template <typename Gives, typename Takes>
  void shift(Gives gives, Takes takes) {
    std::vector<double> edge(size_t{groups_} * groups_, kFar);
    std::vector<uint32_t> moved(edge.size());
    for (uint32_t host = 0; host < embedding_.hosts; ++host) {
      const uint32_t from = group_of_[host];
      const double now = square(host, from);
      for (uint32_t to = 0; to < groups_; ++to) {
        const double increase = square(host, to) - now;
        if (to == from || increase >= edge[from * groups_ + to]) continue;
        edge[from * groups_ + to] = increase;
        moved[from * groups_ + to] = host;
      }
    }
    // Bellman and Ford's algorithm. A chain visits a group once, so it has less than groups_ edges.
    std::vector<double> cost(groups_, kFar);
    std::vector<uint32_t> previous(groups_, groups_);
    for (uint32_t group = 0; group < groups_; ++group) {
      if (gives(group)) cost[group] = 0;
    }
    bool changed = true;
    for (uint32_t round = 1; round < groups_ && changed; ++round) {
      changed = false;
      for (uint32_t from = 0; from < groups_; ++from) {
        for (uint32_t to = 0; to < groups_; ++to) {
          const double through = cost[from] + edge[from * groups_ + to];
          if (gives(to) || !(through + 1e-12 * std::abs(through) < cost[to]) || on_chain(to, from, previous)) continue;
          cost[to] = through;
          previous[to] = from;
          changed = true;
        }
      }
    }
    uint32_t end = groups_;
    for (uint32_t group = 0; group < groups_; ++group) {
      if (takes(group) && !gives(group) && (end == groups_ || cost[group] < cost[end])) end = group;
    }
    ++sizes_[end];
    for (; previous[end] != groups_; end = previous[end]) group_of_[moved[previous[end] * groups_ + end]] = end;
    --sizes_[end];
  }

  // Returns whether the chain that ends with `last` contains `group`.
  bool on_chain(uint32_t group, uint32_t last, const std::vector<uint32_t>& previous) const {
    for (; last != groups_; last = previous[last]) {
      if (last == group) return true;
    }
    return false;
  }

  void move_centres() {
    std::fill(centres_.begin(), centres_.end(), 0);
    for (uint32_t host = 0; host < embedding_.hosts; ++host) {
      for (uint32_t i = 0; i < embedding_.dimensions; ++i) {
        centres_[group_of_[host] * embedding_.dimensions + i] +=
            embedding_.points[size_t{host} * embedding_.dimensions + i] / sizes_[group_of_[host]];
      }
    }
  }

  const Embedding& embedding_;
  const uint32_t groups_;
  Random& random_;
  uint32_t least_ = 0, most_ = 0;  // hosts in a group
  std::vector<double> centres_;    // by group, then dimension
  std::vector<uint32_t> group_of_, sizes_;
};

Groups groups_of(const std::vector<uint32_t>& group_of, uint32_t count) {
  Groups groups(count);
  for (uint32_t host = 0; host < group_of.size(); ++host) groups[group_of[host]].push_back(host);
  std::sort(groups.begin(), groups.end());
  return groups;
}

}  // namespace

uint32_t balanced_group_count(uint32_t hosts) {
  return std::max<uint32_t>(1, static_cast<uint32_t>(std::lround(std::sqrt(hosts))));
}

absl::StatusOr<Groups> group(const Embedding& embedding, const GroupingOptions& options) {
  if (options.groups < 1 || options.groups > embedding.hosts) {
    return absl::InvalidArgumentError(
        absl::StrCat(embedding.hosts, " hosts can't make ", options.groups, " groups; give 1 to ", embedding.hosts));
  }
  if (!(options.elasticity >= 1 && options.elasticity <= 2)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the balance elasticity is ", options.elasticity, "; give a number from 1 to 2"));
  }
  Random random(options.seed);
  Groups best;
  uint32_t best_spread = 0;
  double best_sum = 0;
  for (uint32_t start = 0; start < std::max(options.starts, 1u); ++start) {
    KMeans clusters(embedding, options, random);
    clusters.run();
    const uint32_t spread = clusters.spread_of_sizes();
    const double sum = clusters.sum_of_squares();
    if (!best.empty() && (spread > best_spread || (spread == best_spread && sum >= best_sum))) continue;
    best = groups_of(clusters.group_of(), options.groups);
    best_spread = spread;
    best_sum = sum;
  }
  return best;
}

RankMap map_of(const Groups& groups) {
  RankMap map;
  for (const std::vector<uint32_t>& hosts : groups) map.insert(map.end(), hosts.begin(), hosts.end());
  return map;
}

}  // namespace gleaner::ranks
