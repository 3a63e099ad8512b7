#include "common/ranks/linkage.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace gleaner::ranks {

Linkage::Linkage(const Distances& distances) : hosts_(distances.hosts()) {
  Distances between = distances;  // mean distances between clusters, which are named by one of their hosts
  std::vector<uint32_t> sizes(hosts_, 1), chain;
  const auto nearest = [&](uint32_t cluster, uint32_t preferred) {
    uint32_t best = preferred;
    for (uint32_t other = 0; other < hosts_; ++other) {
      if (other == cluster || sizes[other] == 0) continue;
      if (best == hosts_ || between.at(cluster, other) < between.at(cluster, best)) best = other;
    }
    return best;
  };
  for (uint32_t left = hosts_; left > 1;) {
    if (chain.empty()) {
      chain.push_back(
          static_cast<uint32_t>(std::ranges::find_if(sizes, [](uint32_t size) { return size > 0; }) - sizes.begin()));
    }
    const uint32_t last = chain.back();
    const uint32_t before = chain.size() > 1 ? chain[chain.size() - 2] : hosts_;
    const uint32_t next = nearest(last, before);
    if (next != before) {
      chain.push_back(next);
      continue;
    }
    chain.resize(chain.size() - 2);
    merges_.push_back({between.at(last, before), last, before});
    const double all = sizes[last] + sizes[before];
    for (uint32_t other = 0; other < hosts_; ++other) {
      if (sizes[other] == 0 || other == last || other == before) continue;
      const double mean = (sizes[last] * between.at(last, other) + sizes[before] * between.at(before, other)) / all;
      between.at(before, other) = between.at(other, before) = mean;
    }
    sizes[before] += sizes[last];
    sizes[last] = 0;
    --left;
  }
  std::ranges::stable_sort(merges_, {}, &Merge::distance);
}

std::vector<uint32_t> Linkage::cut(uint32_t groups) const {
  std::vector<uint32_t> parent(hosts_);
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&](uint32_t host) {
    while (parent[host] != host) host = parent[host] = parent[parent[host]];
    return host;
  };
  for (uint32_t i = 0; i + groups < hosts_; ++i) parent[root(merges_[i].a)] = root(merges_[i].b);
  std::vector<uint32_t> number(hosts_, hosts_), group_of(hosts_);
  uint32_t next = 0;
  for (uint32_t host = 0; host < hosts_; ++host) {
    uint32_t& named = number[root(host)];
    if (named == hosts_) named = next++;
    group_of[host] = named;
  }
  return group_of;
}

}  // namespace gleaner::ranks
