#include "common/topology/paths.h"

#include <algorithm>
#include <limits>

#include "common/base/mix.h"

namespace gleaner::topology {
namespace {

constexpr uint16_t kFar = std::numeric_limits<uint16_t>::max();
static_assert(kMaxSwitches + 1 < kFar && kMaxDistances <= uint64_t{kFar} * kFar, "the longest path has fewer links");

}  // namespace

Paths::Paths(const Topology& topology) : hosts_(topology.host_count()), hosts_forward_(topology.switches().empty()) {
  find_inner_nodes(topology);
  index_steps(topology);
  std::vector<uint32_t> row_of(node_.size(), UINT32_MAX);  // by inner node
  std::vector<uint32_t> targets;
  row_.reserve(hosts_);
  for (uint32_t host = 0; host < hosts_; ++host) {
    uint32_t& row = row_of[inner_[host]];
    if (row == UINT32_MAX) {
      row = static_cast<uint32_t>(targets.size());
      targets.push_back(inner_[host]);
    }
    row_.push_back(row);
  }
  hops_.assign(targets.size() * node_.size(), kFar);
  std::vector<uint32_t> queue(node_.size());
  for (size_t row = 0; row < targets.size(); ++row) measure(targets[row], &hops_[row * node_.size()], queue);
}

void Paths::find_inner_nodes(const Topology& topology) {
  inner_.resize(topology.node_count());
  uplink_.assign(hosts_, kNoChannel);
  for (uint32_t node = 0; node < topology.node_count(); ++node) {
    if (topology.is_host(node)) {
      if (const auto only = topology.only_switch(node)) {
        uplink_[node] = only->channel;
        continue;
      }
    }
    inner_[node] = static_cast<uint32_t>(node_.size());
    node_.push_back(node);
  }
  for (uint32_t host = 0; host < hosts_; ++host) {
    if (is_leaf(host)) inner_[host] = inner_[topology.to(uplink_[host])];
  }
}

void Paths::index_steps(const Topology& topology) {
  for (const uint32_t node : node_) {
    first_.push_back(static_cast<uint32_t>(steps_.size()));
    for (const Topology::Neighbour& next : topology.neighbours(node)) {
      if (!topology.is_host(next.node) || !is_leaf(next.node)) steps_.push_back({inner_[next.node], next.channel});
    }
  }
  first_.push_back(static_cast<uint32_t>(steps_.size()));
}

std::span<const Paths::Step> Paths::steps(uint32_t inner) const {
  return std::span(steps_).subspan(first_[inner], first_[inner + 1] - first_[inner]);
}

// Links lead both ways, so a search from a node gives the distances to it.
void Paths::measure(uint32_t inner, uint16_t* hops, std::vector<uint32_t>& queue) const {
  size_t begin = 0, end = 0;
  queue[end++] = inner;
  hops[inner] = 0;
  while (begin < end && end < queue.size()) {
    const uint32_t here = queue[begin++];
    if (here != inner && !forwards(here)) continue;
    for (const Step& next : steps(here)) {
      if (hops[next.inner] != kFar) continue;
      hops[next.inner] = static_cast<uint16_t>(hops[here] + 1);
      queue[end++] = next.inner;
    }
  }
}

bool Paths::leads(const Target& target, uint32_t inner, uint32_t next) const {
  return target.hops[next] + 1 == target.hops[inner] && (next == target.inner || forwards(next));
}

uint32_t Paths::hops(uint32_t from, uint32_t to) const {
  if (from == to) return 0;
  return uint32_t{is_leaf(from)} + target(to).hops[inner_[from]] + uint32_t{is_leaf(to)};
}

uint64_t Paths::count(uint32_t from, uint32_t to) const {
  // Counts the paths from `from` to each node of one distance to `to`, one distance after the other.
  const Target end = target(to);
  std::vector<uint64_t> ways(node_.size(), 0);
  std::vector<uint32_t> layer = {inner_[from]}, next_layer;
  ways[inner_[from]] = 1;
  for (uint32_t left = end.hops[inner_[from]]; left > 0; --left) {
    next_layer.clear();
    for (const uint32_t here : layer) {
      for (const Step& next : steps(here)) {
        if (!leads(end, here, next.inner)) continue;
        uint64_t& sum = ways[next.inner];
        if (sum == 0) next_layer.push_back(next.inner);
        if (__builtin_add_overflow(sum, ways[here], &sum)) sum = UINT64_MAX;
      }
    }
    layer.swap(next_layer);
  }
  return ways[end.inner];
}

void Paths::append_path(uint32_t from, uint32_t to, uint64_t flow, std::vector<uint32_t>& channels) const {
  if (from == to) return;
  if (is_leaf(from)) channels.push_back(uplink_[from]);
  const Target end = target(to);
  for (uint32_t here = inner_[from]; here != end.inner;) {
    const std::span<const Step> all = steps(here);
    const auto fits = [&](const Step& next) { return leads(end, here, next.inner); };
    const auto choices = static_cast<uint64_t>(std::count_if(all.begin(), all.end(), fits));
    uint64_t skip = choices == 1 ? 0 : mix_bits(mix_bits(flow + 1) ^ (uint64_t{node_[here]} << 32)) % choices;
    const auto next = std::find_if(all.begin(), all.end(), [&](const Step& step) { return fits(step) && skip-- == 0; });
    channels.push_back(next->channel);
    here = next->inner;
  }
  if (is_leaf(to)) channels.push_back(uplink_[to] ^ 1);
}

}  // namespace gleaner::topology
