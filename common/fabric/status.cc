#include "common/fabric/status.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/first_few.h"
#include "common/base/text_table.h"

namespace gleaner::fabric {
namespace {

using api::Condition;

Condition ready(const Fabric& fabric, const NearNodes& near) {
  if (fabric.groups().empty()) {
    return {"Ready", false, "NoLabels",
            absl::StrCat("no label tells the ", counted(fabric.node_count(), "node"), " apart, and ",
                         near.measured > 0 ? "no latency does"
                                           : "agents measure no latencies (agent.measure.enabled of the chart)",
                         ": all are taken to be on one switch")};
  }
  const auto probed = std::ranges::count(fabric.groups(), kProbedLevel, &api::TopologyGroup::level);
  const bool all = static_cast<size_t>(probed) == fabric.groups().size();
  return {"Ready", true,
          probed == 0 ? "Labels"
          : all       ? "Probes"
                      : "LabelsAndProbes",
          absl::StrCat(counted(fabric.groups().size(), "group"), " of ", counted(fabric.node_count(), "node"), " by ",
                       probed == 0 ? "labels"
                       : all       ? "latencies"
                                   : "labels and latencies")};
}

Condition nodes_measured(const NearNodes& near) {
  if (near.unmeasured.empty()) return {"NodesMeasured", true, "Measured", ""};
  return {"NodesMeasured", false, "NoAnswer",
          absl::StrCat("no latency to ", first_few(near.unmeasured),
                       " is known: latencies put these nodes into no group. The metrics gleaner_node_probe_* of their "
                       "agents tell more")};
}

Condition latencies_agree(const NearNodes& near) {
  std::vector<std::string> reasons, messages;
  const auto add = [&](const std::vector<std::string>& nodes, const char* reason, absl::string_view before,
                       absl::string_view after) {
    if (nodes.empty()) return;
    reasons.push_back(reason);
    messages.push_back(absl::StrCat(before, first_few(nodes), after));
  };
  add(near.implausible, "Implausible", "the agents of ",
      " measure or answer otherwise than those of most nodes: the others' measurements bound theirs");
  add(near.mislabelled, "LabelsContradict", "the latencies of ",
      " are those of nodes with other labels: the labels count. Correct the labels if they are wrong");
  add(near.unsure, "Unsure", "it is not sure which of ",
      " are near each other, since latencies differ too much: the groups of before are kept, if there were some");
  if (reasons.empty()) return {"LatenciesAgree", true, "Agree", ""};
  return {"LatenciesAgree", false, reasons.front(), absl::StrJoin(messages, "; ")};
}

Condition uplinks_known(const Fabric& fabric, std::span<const api::StatedUplink> uplinks) {
  std::vector<std::string> unmatched, assumed;
  for (const api::StatedUplink& uplink : uplinks) {
    if (fabric.matches(uplink)) continue;
    unmatched.push_back(absl::StrCat(uplink.level, uplink.group.empty() ? "" : "=", uplink.group));
  }
  for (const api::TopologyGroup& group : fabric.groups()) {
    if (group.uplink_bits_per_second <= 0) assumed.push_back(group.name);
  }
  if (!unmatched.empty()) {
    return {
        "UplinksKnown", false, "NoSuchGroup",
        absl::StrCat("spec.uplinks states uplinks of ", first_few(unmatched), ", and there is no such group of nodes")};
  }
  if (!assumed.empty()) {
    return {"UplinksKnown", false, "Assumed",
            absl::StrCat("the uplinks of ", first_few(assumed),
                         " are taken to carry all that their nodes send; state slower ones in spec.uplinks")};
  }
  const auto by_probes =
      std::ranges::find(fabric.groups(), api::UplinkSource::kProbes, &api::TopologyGroup::uplink_source);
  return {"UplinksKnown", true, by_probes == fabric.groups().end() ? "Stated" : "Probes", ""};
}

}  // namespace

api::TopologyStatus status_of(const Fabric& fabric, const NearNodes& near, std::span<const api::StatedUplink> uplinks,
                              std::vector<api::Condition> before, absl::Time now) {
  api::TopologyStatus status{fabric.node_count(), fabric.groups(), std::move(before), fabric.core_latency_seconds()};
  api::set_condition(status.conditions, ready(fabric, near), now);
  api::set_condition(status.conditions, uplinks_known(fabric, uplinks), now);
  if (near.measured > 0) {
    api::set_condition(status.conditions, nodes_measured(near), now);
    api::set_condition(status.conditions, latencies_agree(near), now);
  } else {
    std::erase_if(status.conditions, [](const Condition& condition) {
      return condition.type == "NodesMeasured" || condition.type == "LatenciesAgree";
    });
  }
  return status;
}

}  // namespace gleaner::fabric
