// group_value() tells the value by which the operator made a group, from the group's name in the Topology. Pure.
#pragma once

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/api/topology.h"

namespace gleaner::fabric {

// Returns the value of the group's level that its nodes share: "rack-1" for "zone-a/rack-1". Some names lack the
// parent's name, or end in # and a number (fabric.cc); a status that somebody has edited may have any. The result is a
// part of the group's name.
inline absl::string_view group_value(const api::TopologyGroup& group) {
  absl::string_view value = group.name;
  if (!group.parent.empty()) absl::ConsumePrefix(&value, absl::StrCat(group.parent, "/"));
  return value.substr(0, value.find('#'));
}

}  // namespace gleaner::fabric
