// gleaner strategies: compares the ways in which a job could sum its tensors, by their modelled times.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/fleet_flags.h"
#include "cli/networks/commands.h"
#include "cli/networks/probed_tree.h"
#include "cli/print.h"
#include "cli/topology_flags.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/plan/uplinks.h"
#include "common/strategy/candidates.h"
#include "common/strategy/rack_times.h"
#include "common/topology/probes.h"

namespace gleaner::cli {
namespace {

struct StrategiesFlags {
  TopologyFlags topology;
  int64_t summers = 0;
  std::string sizes = "4,1KiB,16KiB,64KiB,1MiB,64MiB";
  std::string partition_bytes;
  std::string dtype = "fp32";
  std::string output = "table";
};

// The candidates, and the sizes for which they are compared.
struct Comparison {
  std::vector<strategy::Candidate> candidates;
  std::vector<uint64_t> sizes;
  std::vector<strategy::NewTensor> tensors;  // by size
  std::vector<std::vector<double>> seconds;  // by size, then by candidate
  collective::Groups racks;                  // empty: none
  std::optional<strategy::RackTimes> rack_times;

  size_t fastest(size_t size) const { return strategy::fastest(seconds[size]); }
  // Returns the time of the candidate whose algorithm this is; infinity: there is none.
  double seconds_by(absl::string_view algorithm, size_t size) const {
    for (size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].schedule.has_value() && candidates[i].schedule->algorithm == algorithm) return seconds[size][i];
    }
    return std::numeric_limits<double>::infinity();
  }
  // Returns whether racks take less time than what does not know them.
  bool racks_pay(size_t size) const {
    return seconds_by("racks", size) < std::min(seconds[size].front(), seconds_by("ring", size));
  }
  // Returns the most bytes of a partition, by size.
  std::vector<uint64_t> partition_bytes(const strategy::Candidate& candidate) const {
    std::vector<uint64_t> bytes;
    for (const strategy::NewTensor& tensor : tensors) bytes.push_back(partition_bytes_of(candidate, tensor));
    return bytes;
  }
};

absl::StatusOr<std::vector<uint64_t>> parse_byte_sizes(const std::string& text) {
  std::vector<uint64_t> sizes;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    const auto bytes = parse_bytes(part);
    if (!bytes.ok()) return absl::InvalidArgumentError(absl::StrCat("--sizes: ", bytes.status().message()));
    sizes.push_back(*bytes);
  }
  return sizes;
}

absl::StatusOr<Comparison> compare(const StrategiesFlags& flags) {
  GLN_ASSIGN_OR_RETURN(topology::Topology topology, topology_of(flags.topology));
  const auto summers = static_cast<uint32_t>(flags.summers);
  if (summers >= topology.host_count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--summers: ", summers, " of the ", counted(topology.host_count(), "host"), "; at least one host is a worker"));
  }
  const uint32_t workers = topology.host_count() - summers;
  GLN_ASSIGN_OR_RETURN(topology, placed(flags.topology, topology, workers, summers));
  if (topology::is_of_probes(topology)) {
    GLN_ASSIGN_OR_RETURN(topology, probed_tree(topology, workers, "strategies"));
  }
  const topology::Network network = topology::make_network(std::move(topology));
  auto candidates = strategy::candidates(network, workers, summers);
  if (!candidates.ok()) return absl::InvalidArgumentError(absl::StrCat("--topology: ", candidates.status().message()));
  Comparison made{.candidates = *std::move(candidates), .racks = strategy::racks_of(network.topology, workers)};
  if (!made.racks.empty()) {
    GLN_ASSIGN_OR_RETURN(made.rack_times, strategy::compare_racks(network, made.racks));
  }
  GLN_ASSIGN_OR_RETURN(made.sizes, parse_byte_sizes(flags.sizes));
  GLN_ASSIGN_OR_RETURN(const auto partition_bytes, parse_partition_bytes(flags.partition_bytes));
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, plan::fleet_of(network.topology, workers, summers));
  const DataType type = *parse_data_type(flags.dtype);  // valid: the parser of the flags checked it
  for (const uint64_t size : made.sizes) {
    made.tensors.push_back({.bytes = size,
                            .types = plan::encoding_of({.type = type}),
                            .by_default = plan::default_partition_bytes(fleet, size),
                            .asked = partition_bytes.value_or(0)});
    made.seconds.push_back(strategy::seconds_of_new(made.candidates, made.tensors.back()));
  }
  return made;
}

// Returns the times that decide whether racks pay for each size, the verdict, and both sides of PHub's condition.
std::string racks_text(const Comparison& comparison) {
  const bool has_racks = comparison.rack_times.has_value() && std::isfinite(comparison.seconds_by("racks", 0));
  if (!has_racks) return "";  // no rack has several workers
  const strategy::RackTimes& times = *comparison.rack_times;
  std::vector<std::vector<std::string>> rows = {
      {"RACKS"}, {"flat, by summers"}, {"flat, by a ring"}, {"by racks"}, {"racks pay"}};
  for (size_t size = 0; size < comparison.sizes.size(); ++size) {
    rows[0].push_back(format_bytes(static_cast<double>(comparison.sizes[size])));
    rows[1].push_back(format_seconds(comparison.seconds[size].front()));
    rows[2].push_back(format_seconds(comparison.seconds_by("ring", size)));
    rows[3].push_back(format_seconds(comparison.seconds_by("racks", size)));
    rows[4].push_back(comparison.racks_pay(size) ? "yes" : "no");
  }
  const auto gigabyte = [](double seconds_per_byte) { return format_seconds(seconds_per_byte * 1e9); };
  return absl::StrCat("\n", align(rows, "lr"), "PHub's condition ", times.holds() ? "holds" : "does not hold",
                      ". Links need for each GB: colocated summers ", gigabyte(times.flat_seconds_per_byte),
                      ", a ring ", gigabyte(times.ring_seconds_per_byte), ", racks ",
                      gigabyte(times.two_level_seconds_per_byte), " (within ", gigabyte(times.within_seconds_per_byte),
                      ", across ", gigabyte(times.across_seconds_per_byte), "). The second level adds ",
                      format_seconds(times.two_level_latency_seconds - times.flat_latency_seconds), " of latency.\n");
}

nlohmann::ordered_json racks_json(const Comparison& comparison) {
  const strategy::RackTimes& times = *comparison.rack_times;
  nlohmann::ordered_json json;
  for (const std::vector<uint32_t>& rack : comparison.racks) json["workers"].push_back(rack.size());
  json["flat_seconds_per_byte"] = times.flat_seconds_per_byte;
  json["ring_seconds_per_byte"] = times.ring_seconds_per_byte;
  json["within_seconds_per_byte"] = times.within_seconds_per_byte;
  json["across_seconds_per_byte"] = times.across_seconds_per_byte;
  json["two_level_seconds_per_byte"] = times.two_level_seconds_per_byte;
  json["flat_latency_seconds"] = times.flat_latency_seconds;
  json["ring_latency_seconds"] = times.ring_latency_seconds;
  json["two_level_latency_seconds"] = times.two_level_latency_seconds;
  json["condition_holds"] = times.holds();
  for (size_t size = 0; size < comparison.sizes.size(); ++size) json["pays"].push_back(comparison.racks_pay(size));
  return json;
}

std::string to_table(const Comparison& comparison) {
  std::vector<std::vector<std::string>> rows = {{"STRATEGY"}};
  for (const uint64_t size : comparison.sizes) rows[0].push_back(format_bytes(static_cast<double>(size)));
  for (size_t i = 0; i < comparison.candidates.size(); ++i) {
    rows.push_back({name_of(comparison.candidates[i])});
    for (size_t size = 0; size < comparison.sizes.size(); ++size) {
      rows.back().push_back(
          absl::StrCat(comparison.fastest(size) == i ? "* " : "", format_seconds(comparison.seconds[size][i])));
    }
  }
  return absl::StrCat(align(rows, "lr"), "* the fastest for this size\n", racks_text(comparison));
}

std::string to_json(const Comparison& comparison) {
  nlohmann::ordered_json json;
  json["partition_bytes"] = comparison.partition_bytes(comparison.candidates.front());
  json["bytes"] = comparison.sizes;
  json["strategies"] = nlohmann::ordered_json::array();
  for (size_t i = 0; i < comparison.candidates.size(); ++i) {
    const strategy::Candidate& candidate = comparison.candidates[i];
    std::vector<double> seconds;
    for (const std::vector<double>& of_size : comparison.seconds) seconds.push_back(of_size[i]);
    const collective::Spec spec = candidate.schedule.value_or(collective::Spec{.algorithm = plan::kSummersStrategy});
    json["strategies"].push_back({{"strategy", spec.algorithm},
                                  {"stages", spec.factors},
                                  {"group_sizes", spec.group_sizes},
                                  {"latency_seconds", candidate.model.latency_seconds},
                                  {"partition_bytes", comparison.partition_bytes(candidate)},
                                  {"seconds", seconds}});
  }
  json["fastest"] = nlohmann::ordered_json::array();
  for (size_t size = 0; size < comparison.sizes.size(); ++size) {
    json["fastest"].push_back(name_of(comparison.candidates[comparison.fastest(size)]));
  }
  if (comparison.rack_times.has_value()) json["racks"] = racks_json(comparison);
  return json.dump(2) + "\n";
}

absl::Status run_strategies(const StrategiesFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const Comparison comparison, compare(flags));
  return print(flags.output == "json" ? to_json(comparison) : to_table(comparison));
}

}  // namespace

void add_strategies(flags::Command& app, Context& context) {
  auto flags = std::make_shared<StrategiesFlags>();
  flags::Command command =
      app.add_command("strategies", "Compare the ways in which a job could sum its tensors, by modelled times");
  add_topology_flag(command, flags->topology);
  add_link_flags(command, flags->topology);
  add_placement_flag(command, flags->topology);
  command.add_number("--summers", flags->summers, "Hosts that are summers; the others are workers")
      .between(int64_t{0}, int64_t{plan::kMaxMembers})
      .show_default();
  command.add_text("--sizes", flags->sizes, "Sizes of a tensor to compare").show_default();
  add_partition_bytes_flag(command, flags->partition_bytes, "as for a job");
  add_data_type_flag(command, flags->dtype, "Data type of the tensors").show_default();
  command.add_text("-o,--output", flags->output, "json, or table for people").one_of({"json", "table"}).show_default();
  command.on_chosen([flags, &context] { context.run = [flags] { return run_strategies(*flags); }; });
}

}  // namespace gleaner::cli
