#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/units.h"
#include "common/topology/drawing.h"
#include "common/topology/tiers.h"

namespace gleaner::topology {

std::string to_dot(const Topology& topology) {
  const std::vector<uint32_t> tier = tiers(topology);
  std::vector<std::string> names;  // by node, quoted
  for (uint32_t node = 0; node < topology.node_count(); ++node) {
    names.push_back(
        absl::StrCat("\"", absl::StrReplaceAll(topology.name(node), {{"\\", "\\\\"}, {"\"", "\\\""}}), "\""));
  }
  std::string text = "graph topology {\n  rankdir=BT;\n  node [shape=box];\n";
  const uint32_t top = *std::max_element(tier.begin(), tier.end());
  for (uint32_t row = 0; row <= top; ++row) {
    text += "  { rank=same;";
    for (uint32_t node = 0; node < topology.node_count(); ++node) {
      if (tier[node] == row) absl::StrAppend(&text, " ", names[node], row == 0 ? ";" : " [shape=ellipse];");
    }
    text += " }\n";
  }
  for (const Link& link : topology.links()) {
    const std::string there = format_bits_per_second(link.bits_per_second);
    const std::string back = format_bits_per_second(link.back_bits_per_second);
    absl::StrAppend(&text, "  ", names[link.a], " -- ", names[link.b], " [label=\"", there,
                    there == back ? "" : absl::StrCat(", back ", back), ", ", format_seconds(link.latency_seconds),
                    "\"];\n");
  }
  return text + "}\n";
}

}  // namespace gleaner::topology
