#include "common/ranks/conflicts.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/collective/cost.h"

namespace gleaner::ranks {

absl::StatusOr<Flows> count_flows(const collective::Schedule& schedule, const topology::Network& network,
                                  const RankMap& host_of) {
  const topology::Topology& topology = network.topology;
  GLN_RETURN_IF_ERROR(check_map(host_of, schedule.ranks, topology.host_count()));
  GLN_ASSIGN_OR_RETURN(const std::vector<collective::StepPattern> patterns, collective::step_patterns(schedule));
  Flows flows{{}, std::vector<uint32_t>(schedule.steps)};
  std::vector<uint32_t> count(topology.channel_count(), 0);
  std::vector<uint32_t> path, used;
  for (const collective::StepPattern& pattern : patterns) {
    for (const uint32_t step : pattern.steps)
      flows.pattern_of_step[step] = static_cast<uint32_t>(flows.patterns.size());
    used.clear();
    for (const collective::Transfer& transfer : pattern.transfers) {
      const uint32_t from = host_of[transfer.from], to = host_of[transfer.to];
      path.clear();
      network.paths.append_path(from, to, collective::flow_between(from, to), path);
      for (const uint32_t channel : path) {
        if (count[channel]++ == 0) used.push_back(channel);
      }
    }
    std::sort(used.begin(), used.end());
    std::vector<ChannelFlows>& channels = flows.patterns.emplace_back();
    for (const uint32_t channel : used) {
      channels.push_back({channel, count[channel]});
      count[channel] = 0;
    }
  }
  return flows;
}

Conflicts count_conflicts(const Flows& flows, const topology::Topology& topology) {
  std::vector<Conflicts> of_pattern;
  for (const std::vector<ChannelFlows>& channels : flows.patterns) {
    Conflicts& here = of_pattern.emplace_back();
    for (const ChannelFlows& entry : channels) {
      here.most_flows = std::max(here.most_flows, entry.flows);
      if (entry.flows < 2) continue;
      ++here.total;
      here.between_switches +=
          !topology.is_host(topology.from(entry.channel)) && !topology.is_host(topology.to(entry.channel));
    }
  }
  Conflicts all;
  for (const uint32_t pattern : flows.pattern_of_step) {
    all.total += of_pattern[pattern].total;
    all.between_switches += of_pattern[pattern].between_switches;
    all.most_flows = std::max(all.most_flows, of_pattern[pattern].most_flows);
  }
  return all;
}

}  // namespace gleaner::ranks
