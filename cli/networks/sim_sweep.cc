#include "cli/networks/sim_sweep.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "cli/networks/line_plot.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/plan/schedule_name.h"
#include "common/topology/spec.h"

namespace gleaner::cli {
namespace {

absl::StatusOr<std::vector<uint32_t>> parse_rank_counts(const std::string& text) {
  std::vector<uint32_t> sizes;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    uint32_t size = 0;
    const bool fits = absl::SimpleAtoi(part, &size) && size >= 2 && size <= topology::kMaxHosts;
    if (!fits || (!sizes.empty() && size <= sizes.back())) {
      return absl::InvalidArgumentError(absl::StrCat("--sweep ", quote(text), ": expected ascending numbers of ranks, ",
                                                     "2 to ", topology::kMaxHosts, ", as 64,128,256"));
    }
    sizes.push_back(size);
  }
  return sizes;
}

std::string name_of(const SweepLine& line) { return absl::StrCat(line.topology, " ", line.algorithm); }

absl::StatusOr<Simulation> run_point(const TopologyFlags& topology, const std::string& spec, uint32_t size,
                                     SimulationFlags simulation, const std::string& algorithm,
                                     const SimulationProgress& progress) {
  TopologyFlags of_size = topology;
  GLN_ASSIGN_OR_RETURN(of_size.text, spec_of_size(spec, size));
  GLN_ASSIGN_OR_RETURN(topology::Topology made, topology_of(of_size));
  simulation.algorithm = algorithm;
  simulation.ranks = size;
  if (algorithm == kHdrm) simulation.rank_map.clear();
  return simulate(simulation, topology::make_network(std::move(made)), {}, progress);
}

absl::Status check(const SimulationFlags& simulation, const std::vector<std::string>& algorithms) {
  const auto unfit = [](absl::string_view flag) {
    return absl::InvalidArgumentError(
        absl::StrCat(flag, " does not fit --sweep, which simulates all-reduces of several sizes"));
  };
  if (simulation.ranks >= 0) return unfit("--ranks");
  if (simulation.summers >= 0) return unfit("--summers");
  if (!simulation.stages.empty()) return unfit("--stages");
  for (const std::string& algorithm : algorithms) {
    if (algorithm == plan::kSummersStrategy) return unfit("--algorithm summers");
  }
  return absl::OkStatus();
}

std::string family_of(const std::string& spec) { return spec.substr(0, spec.find(':')); }

// Returns the lines without points. Every SPEC is checked before the first simulation.
absl::StatusOr<std::vector<SweepLine>> lines_of(const std::string& topologies, const std::vector<uint32_t>& sizes,
                                                const SimulationFlags& simulation) {
  const std::vector<std::string> specs = absl::StrSplit(topologies, ',');
  const std::vector<std::string> algorithms = absl::StrSplit(simulation.algorithm, ',');
  GLN_RETURN_IF_ERROR(check(simulation, algorithms));
  std::vector<SweepLine> lines;
  for (const std::string& spec : specs) {
    if (std::ranges::count(specs, spec) > 1) {
      return absl::InvalidArgumentError(absl::StrCat("--topology has ", quote(spec), " twice; give it once"));
    }
    for (const uint32_t size : sizes) GLN_RETURN_IF_ERROR(spec_of_size(spec, size).status());
    const std::string family = family_of(spec);
    const bool is_only_one = std::ranges::count(specs, family, family_of) == 1;
    for (const std::string& algorithm : algorithms) {
      if (algorithm == kHdrm && family != "bigraph" && algorithms.size() > 1) continue;
      lines.push_back({.spec = spec, .topology = is_only_one ? family : spec, .algorithm = algorithm, .points = {}});
    }
  }
  return lines;
}

}  // namespace

absl::StatusOr<std::string> spec_of_size(const std::string& spec, uint32_t size) {
  const std::pair<std::string, std::string> parts = absl::StrSplit(spec, absl::MaxSplits(':', 1));
  const auto wrong = [&](const auto&... message) {
    return absl::InvalidArgumentError(absl::StrCat("--sweep: ", message...));
  };
  if (parts.first == "star") return absl::StrCat("star:", size);
  if (parts.first == "racks") {
    const std::pair<std::string, std::string> counts = absl::StrSplit(parts.second, absl::MaxSplits('x', 1));
    uint32_t hosts = 0;
    if (!absl::SimpleAtoi(counts.second, &hosts) || hosts == 0) {
      return wrong("give --topology racks:RxH, with the number H of hosts in each rack");
    }
    if (size % hosts != 0) return wrong(size, " ranks are no whole number of racks with ", hosts, " hosts");
    return absl::StrCat("racks:", size / hosts, "x", hosts);
  }
  if (parts.first == "fat-tree") {
    uint64_t ports = 2;
    while (ports * ports * ports / 4 < size) ports += 2;
    return absl::StrCat("fat-tree:", ports);
  }
  if (parts.first == "bigraph") {
    for (uint32_t hosts = size / 2; hosts > 0; --hosts) {
      const uint32_t switches = size / hosts;
      if (size % hosts == 0 && switches % 2 == 0 && hosts <= switches / 2) {
        return absl::StrCat("bigraph:", hosts, "x", switches);
      }
    }
    return wrong("a BiGraph has an even number of hosts, so not ", size);
  }
  return wrong("--topology ", quote(spec), " names no family of topologies; give star, fat-tree, bigraph or racks:RxH");
}

absl::StatusOr<Sweep> run_sweep(const SweepFlags& flags, const TopologyFlags& topology,
                                const SimulationFlags& simulation,
                                const std::function<SimulationProgress(const std::string& name)>& starting) {
  GLN_ASSIGN_OR_RETURN(const uint64_t bytes, bytes_of(simulation));
  Sweep sweep = {.bytes = format_bytes(static_cast<double>(bytes)), .sizes = {}, .lines = {}};
  GLN_ASSIGN_OR_RETURN(sweep.sizes, parse_rank_counts(flags.sizes));
  GLN_ASSIGN_OR_RETURN(sweep.lines, lines_of(topology.text, sweep.sizes, simulation));
  for (SweepLine& line : sweep.lines) {
    for (const uint32_t size : sweep.sizes) {
      const SimulationProgress progress = starting(absl::StrCat(name_of(line), " ", size));
      GLN_ASSIGN_OR_RETURN(Simulation point,
                           run_point(topology, line.spec, size, simulation, line.algorithm, progress));
      line.points.push_back(std::move(point));
    }
  }
  return sweep;
}

std::string to_json(const Sweep& sweep) {
  using Json = nlohmann::ordered_json;
  Json lines = Json::array();
  for (const SweepLine& line : sweep.lines) {
    Json points = Json::array();
    for (const Simulation& point : line.points) {
      points.push_back({{"ranks", point.ranks},
                        {"seconds", point.run.seconds},
                        {"bound_seconds", point.bound.seconds},
                        {"events", point.run.events}});
    }
    lines.push_back({{"topology", line.topology}, {"algorithm", line.algorithm}, {"points", std::move(points)}});
  }
  return Json{{"sweep", std::move(lines)}}.dump(2) + "\n";
}

std::string to_table(const Sweep& sweep) {
  std::string text = absl::StrFormat("%-7s", "ranks");
  std::vector<size_t> widths;
  for (const SweepLine& line : sweep.lines) {
    widths.push_back(std::max<size_t>(name_of(line).size(), 10));
    absl::StrAppendFormat(&text, "  %*s", static_cast<int>(widths.back()), name_of(line));
  }
  text += "\n";
  for (size_t i = 0; i < sweep.sizes.size(); ++i) {
    absl::StrAppendFormat(&text, "%-7d", sweep.sizes[i]);
    for (size_t l = 0; l < sweep.lines.size(); ++l) {
      const double seconds = sweep.lines[l].points[i].run.seconds;
      absl::StrAppendFormat(&text, "  %*s", static_cast<int>(widths[l]), format_seconds(seconds));
    }
    text += "\n";
  }
  return text;
}

std::string to_svg(const Sweep& sweep) {
  LinePlot plot = {.title = absl::StrCat("All-reduce of ", sweep.bytes),
                   .x_label = "ranks",
                   .y_label = "ms",
                   .x = {sweep.sizes.begin(), sweep.sizes.end()},
                   .lines = {}};
  for (const SweepLine& line : sweep.lines) {
    plot.lines.push_back({name_of(line), {}});
    for (const Simulation& point : line.points) {
      plot.lines.back().y.push_back(std::max(point.run.seconds * 1e3, 1e-6));  // a logarithmic axis has no 0
    }
  }
  return to_svg(plot);
}

}  // namespace gleaner::cli
