#include "common/ranks/path_table.h"

#include "common/collective/cost.h"

namespace gleaner::ranks {

PathTable::PathTable(const topology::Network& network) : hosts_(network.topology.host_count()) {
  const topology::Topology& topology = network.topology;
  const size_t pairs = size_t{hosts_} * hosts_;
  begin_.reserve(pairs + 1);
  latency_seconds_.reserve(pairs);
  begin_.push_back(0);
  for (uint32_t from = 0; from < hosts_; ++from) {
    for (uint32_t to = 0; to < hosts_; ++to) {
      const auto first = topology.neighbours(from), last = topology.neighbours(to);
      if (from == to) {
        // No channel.
      } else if (first.size() == 1 && last.size() == 1 && first[0].node == last[0].node) {
        // Both are at one switch, whose many neighbours append_path() would search.
        channels_.push_back(first[0].channel);
        channels_.push_back(last[0].channel ^ 1);
      } else {
        network.paths.append_path(from, to, collective::flow_between(from, to), channels_);
      }
      double latency = 0;
      for (size_t i = begin_.back(); i < channels_.size(); ++i) latency += topology.latency_seconds(channels_[i]);
      latency_seconds_.push_back(latency);
      begin_.push_back(static_cast<uint32_t>(channels_.size()));
    }
  }
}

}  // namespace gleaner::ranks
