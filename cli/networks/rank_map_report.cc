#include "cli/networks/rank_map_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/networks/best_rank_map.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/strategy/rank_maps.h"

namespace gleaner::cli {
namespace {

using Row = std::vector<std::string>;

std::string ranges(const std::vector<uint32_t>& steps) {
  std::string text;
  for (size_t i = 0; i < steps.size();) {
    size_t end = i + 1;
    while (end < steps.size() && steps[end] == steps[end - 1] + 1) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ", ", steps[i]);
    if (end - i > 1) absl::StrAppend(&text, "-", steps[end - 1]);
    i = end;
  }
  return text;
}

std::string conflicts_text(const ranks::Conflicts& conflicts) {
  if (conflicts.total == 0) return "none";
  return absl::StrCat(conflicts.total, " (", conflicts.between_switches, " between switches), up to ",
                      counted(conflicts.most_flows, "flow"), " on a channel");
}

// Appends the cells of one map in a row of steps.
void append_step(Row& row, const RankMapReport& report, const collective::StepCost& step) {
  const topology::Topology& topology = report.topology;
  row.push_back(format_seconds(step.seconds));
  row.push_back(step.flows == 0 ? "-"
                                : absl::StrCat(topology.name(topology.from(step.worst_channel)), " -> ",
                                               topology.name(topology.to(step.worst_channel))));
  row.push_back(step.flows == 0 ? "-" : absl::StrCat(step.flows));
}

// Returns a line for each kind of step. Steps of one kind send the same messages, so they cost the same.
std::string step_lines(const RankMapReport& report) {
  constexpr size_t kMostLines = 40;
  std::vector<std::vector<uint32_t>> steps(report.map.flows.patterns.size());
  for (uint32_t step = 0; step < report.map.flows.pattern_of_step.size(); ++step) {
    steps[report.map.flows.pattern_of_step[step]].push_back(step);
  }
  std::vector<Row> rows = {{"steps", "identity", "binding link", "flows", "this map", "binding link", "flows"}};
  for (size_t pattern = 0; pattern < std::min(steps.size(), kMostLines); ++pattern) {
    Row& row = rows.emplace_back();
    row.push_back(ranges(steps[pattern]));
    append_step(row, report, report.identity.cost.steps[steps[pattern][0]]);
    append_step(row, report, report.map.cost.steps[steps[pattern][0]]);
  }
  std::string text = align(rows, "l");
  if (steps.size() > kMostLines) absl::StrAppend(&text, "... and ", steps.size() - kMostLines, " more kinds of step\n");
  return text;
}

std::string names_of(const topology::Topology& topology, const std::vector<uint32_t>& hosts) {
  return absl::StrJoin(hosts, " ", [&](std::string* out, uint32_t host) { *out += topology.name(host); });
}

// Open MPI ends a name at a blank, "=" or ",", takes the rest of a line from "#" on as a comment, and refuses letters
// outside ASCII.
absl::Status check_names(const RankMapReport& report) {
  for (const uint32_t host : report.host_of) {
    const std::string& name = report.topology.name(host);
    const bool fits = std::ranges::all_of(name, [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains(".-_:@", c);
    });
    if (fits && !name.empty()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--output: Open MPI does not read the name of host ", quote(name),
                     ", since it has more than letters, digits and .-_:@; take json, or rename the host"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MapFigures> MapFigures::of(const collective::Schedule& schedule, const topology::Network& network,
                                          const ranks::RankMap& host_of, uint64_t bytes) {
  MapFigures figures;
  GLN_ASSIGN_OR_RETURN(figures.cost, collective::cost(schedule, network, host_of, bytes));
  if (const auto simulated = strategy::simulated_seconds(schedule, network, bytes, kMostTimedMessages)) {
    GLN_ASSIGN_OR_RETURN(figures.cost.seconds, simulated(host_of));
  }
  GLN_ASSIGN_OR_RETURN(figures.flows, ranks::count_flows(schedule, network, host_of));
  figures.conflicts = ranks::count_conflicts(figures.flows, network.topology);
  return figures;
}

std::string to_json(const RankMapReport& report) {
  nlohmann::ordered_json json = {{"algorithm", report.algorithm}, {"ranks", nlohmann::ordered_json::array()}};
  for (uint32_t rank = 0; rank < report.host_of.size(); ++rank) {
    const topology::Host& host = report.topology.hosts()[report.host_of[rank]];
    json["ranks"].push_back({{"rank", rank}, {"host", host.name}, {"place", host.place}});
  }
  json["bytes"] = report.bytes;
  json["seconds"] = report.map.cost.seconds;
  json["identity_seconds"] = report.identity.cost.seconds;
  json["conflicts"] = report.map.conflicts.total;
  json["identity_conflicts"] = report.identity.conflicts.total;
  json["origin"] = report.origin;
  for (const std::vector<uint32_t>& hosts : report.groups) {
    nlohmann::ordered_json& group = json["groups"].emplace_back(nlohmann::ordered_json::array());
    for (const uint32_t host : hosts) group.push_back(report.topology.name(host));
  }
  return absl::StrCat(json.dump(2), "\n");
}

absl::StatusOr<std::string> to_hostfile(const RankMapReport& report) {
  GLN_RETURN_IF_ERROR(check_names(report));
  std::string text;
  for (const uint32_t host : report.host_of) absl::StrAppend(&text, report.topology.name(host), " slots=1\n");
  return text;
}

absl::StatusOr<std::string> to_rankfile(const RankMapReport& report) {
  GLN_RETURN_IF_ERROR(check_names(report));
  std::string text;
  for (uint32_t rank = 0; rank < report.host_of.size(); ++rank) {
    absl::StrAppend(&text, "rank ", rank, "=", report.topology.name(report.host_of[rank]), " slot=*:*\n");
  }
  return text;
}

std::string to_table(const RankMapReport& report) {
  std::vector<Row> rows = {{"rank", "host", "place"}};
  for (uint32_t rank = 0; rank < report.host_of.size(); ++rank) {
    const topology::Host& host = report.topology.hosts()[report.host_of[rank]];
    rows.push_back({absl::StrCat(rank), host.name, host.place.empty() ? "-" : absl::StrJoin(host.place, ".")});
  }
  return align(rows, "l");
}

std::string to_explanation(const RankMapReport& report) {
  const double before = report.identity.cost.seconds, after = report.map.cost.seconds;
  std::string text =
      absl::StrCat(report.algorithm, ", ", counted(report.host_of.size(), "rank"), " on ",
                   counted(report.topology.host_count(), "host"), ", ", format_bytes(static_cast<double>(report.bytes)),
                   "\n\n", "Map         ", report.origin, "\n");
  absl::StrAppend(&text, "Time        ", format_seconds(after));
  if (after < before) {
    absl::StrAppendFormat(&text, ", %.2f times as fast as rank i on host i (%s)\n", before / after,
                          format_seconds(before));
  } else {
    absl::StrAppend(&text, ", as with rank i on host i\n");
  }
  absl::StrAppend(&text, "Conflicts   ", conflicts_text(report.map.conflicts), "; with rank i on host i ",
                  conflicts_text(report.identity.conflicts), "\n");
  for (size_t group = 0; group < report.groups.size(); ++group) {
    absl::StrAppendFormat(&text, "%-11s %s\n", absl::StrCat("Group ", group),
                          names_of(report.topology, report.groups[group]));
  }
  if (report.map.cost.steps.empty()) return text;
  return absl::StrCat(text, "\n", step_lines(report));
}

}  // namespace gleaner::cli
