#include "common/fabric/status.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/first_few.h"
#include "common/base/text_table.h"

namespace gleaner::fabric {
namespace {

using api::Condition;

Condition ready(const Fabric& fabric) {
  if (fabric.groups().empty()) {
    return {"Ready", false, "NoLabels",
            absl::StrCat("no label tells the ", counted(fabric.node_count(), "node"),
                         " apart: all are taken to be on one switch")};
  }
  return {"Ready", true, "Labels",
          absl::StrCat(counted(fabric.groups().size(), "group"), " of ", counted(fabric.node_count(), "node"),
                       " by labels")};
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
    return {"UplinksKnown", false, "NoSuchGroup",
            absl::StrCat("spec.uplinks states uplinks of ", first_few(unmatched),
                         ", and no group of nodes has that label")};
  }
  if (!assumed.empty()) {
    return {"UplinksKnown", false, "Assumed",
            absl::StrCat("the uplinks of ", first_few(assumed),
                         " are taken to carry all that their nodes send; state slower ones in spec.uplinks")};
  }
  return {"UplinksKnown", true, "Stated", ""};
}

}  // namespace

api::TopologyStatus status_of(const Fabric& fabric, std::span<const api::StatedUplink> uplinks,
                              std::vector<api::Condition> before, absl::Time now) {
  api::TopologyStatus status{fabric.node_count(), fabric.groups(), std::move(before)};
  api::set_condition(status.conditions, ready(fabric), now);
  api::set_condition(status.conditions, uplinks_known(fabric, uplinks), now);
  return status;
}

}  // namespace gleaner::fabric
