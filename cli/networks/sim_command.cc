// gleaner sim: simulates an all-reduce, or push-pull through summers, on a network.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/networks/commands.h"
#include "cli/networks/progress_report.h"
#include "cli/networks/sim_conditions.h"
#include "cli/networks/sim_report.h"
#include "cli/networks/sim_sweep.h"
#include "cli/networks/simulation.h"
#include "cli/output_file.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "cli/topology_flags.h"
#include "common/base/env.h"
#include "common/base/file.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/base/text_table.h"
#include "common/base/units.h"
#include "common/plan/schedule_name.h"

namespace gleaner::cli {
namespace {

struct SimFlags {
  TopologyFlags topology;
  SimulationFlags simulation;
  ConditionFlags conditions;
  SweepFlags sweep;
  std::string output = "table";
};

// Returns functions that report on standard error how far one simulation is. `name` begins each line.
SimulationProgress progress_of(const Clock& clock, const std::string& name) {
  const auto report = std::make_shared<ProgressReport>(clock, absl::StrCat(own_command("sim"), name));
  const auto update = [report](double done, absl::string_view work) {
    report->update([&] { return absl::StrFormat("%.0f %% of %s", done * 100, work); });
  };
  return {.searching = [update](double done) { update(done, "the search for a rank map is done"); },
          .simulating = [update](double done) { update(done, "the messages have arrived"); }};
}

absl::Status check_algorithms(const std::string& list) {
  const std::vector<std::string> known = simulated_algorithms();
  for (const absl::string_view name : absl::StrSplit(list, ',')) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--algorithm: ", quote(name), " is unknown; expected one of ",
                                                   absl::StrJoin(known, ", "), ", and several only with --sweep"));
  }
  return absl::OkStatus();
}

std::string title_of(const SimFlags& flags, const Simulation& simulation) {
  const std::string members =
      flags.simulation.algorithm == plan::kSummersStrategy
          ? absl::StrCat(counted(simulation.ranks, "worker"), " and ", counted(simulation.summers, "summer"))
          : counted(simulation.ranks, "rank");
  return absl::StrCat(flags.simulation.algorithm, " of ", format_bytes(static_cast<double>(simulation.bytes)), ", ",
                      members, " on ", flags.topology.text);
}

// Returns the topology with the hosts of workers and summers first, unless --rank-map says who is where.
absl::StatusOr<topology::Topology> with_members_placed(const SimFlags& flags, topology::Topology topology) {
  const SimulationFlags& simulation = flags.simulation;
  if (simulation.algorithm != plan::kSummersStrategy || !simulation.rank_map.empty()) return topology;
  const int64_t hosts = topology.host_count(), summers = std::max<int64_t>(simulation.summers, 0);
  const int64_t workers = simulation.ranks >= 0 ? simulation.ranks : hosts - summers;
  if (workers < 1 || workers + summers > hosts) return topology;  // simulate() says what is wrong
  return placed(flags.topology, topology, static_cast<uint32_t>(workers), static_cast<uint32_t>(summers));
}

absl::Status run_one(const SimFlags& flags) {
  if (!flags.sweep.plot.empty()) return absl::InvalidArgumentError("--plot needs --sweep SIZES");
  if (flags.output == "svg") return absl::InvalidArgumentError("--output svg needs --sweep SIZES");
  if (flags.simulation.algorithm.find(',') != std::string::npos) {
    return absl::InvalidArgumentError("--algorithm: several algorithms need --sweep SIZES");
  }
  GLN_ASSIGN_OR_RETURN(topology::Topology topology, topology_of(flags.topology));
  GLN_ASSIGN_OR_RETURN(topology, with_members_placed(flags, std::move(topology)));
  GLN_ASSIGN_OR_RETURN(const netsim::Conditions conditions, conditions_of(flags.conditions, topology));
  const topology::Network network = topology::make_network(std::move(topology));
  const SystemEnv system({"gleaner", LogLevel::kError});
  GLN_ASSIGN_OR_RETURN(const Simulation simulation,
                       simulate(flags.simulation, network, conditions, progress_of(*system.env().clock, "")));
  return print(flags.output == "json" ? to_json(simulation, network.topology)
                                      : to_table(simulation, network.topology, title_of(flags, simulation)));
}

absl::Status sweep(const SimFlags& flags) {
  if (!flags.conditions.background.empty() || !flags.conditions.failures.empty()) {
    return absl::InvalidArgumentError(
        "--background and --fail do not fit --sweep, whose topologies have different hosts");
  }
  GLN_RETURN_IF_ERROR(check_writable("--plot", flags.sweep.plot));
  const SystemEnv system({"gleaner", LogLevel::kError});
  const auto starting = [&](const std::string& name) {
    return progress_of(*system.env().clock, absl::StrCat(": ", name));
  };
  GLN_ASSIGN_OR_RETURN(const Sweep result, run_sweep(flags.sweep, flags.topology, flags.simulation, starting));
  if (!flags.sweep.plot.empty()) GLN_RETURN_IF_ERROR(replace_file(flags.sweep.plot, to_svg(result), "the plot"));
  if (flags.output == "svg") return print(to_svg(result));
  return print(flags.output == "json" ? to_json(result) : to_table(result));
}

absl::Status run_sim(const SimFlags& flags) {
  GLN_RETURN_IF_ERROR(check_algorithms(flags.simulation.algorithm));
  return flags.sweep.sizes.empty() ? run_one(flags) : sweep(flags);
}

}  // namespace

void add_sim(flags::Command& app, Context& context) {
  auto flags = std::make_shared<SimFlags>();
  flags::Command sim = app.add_command("sim", "Simulate an all-reduce or summers on a network");
  add_topology_flag(sim, flags->topology).required();
  add_link_flags(sim, flags->topology);
  add_placement_flag(sim, flags->topology);
  add_simulation_flags(sim, flags->simulation);
  add_condition_flags(sim, flags->conditions);
  sim.add_text("--sweep", flags->sweep.sizes,
               "Numbers of ranks, 64,128,256: simulates the topology's family in these sizes. --topology and "
               "--algorithm may then be lists with commas");
  sim.add_text("--plot", flags->sweep.plot, "With --sweep: also write a plot to this SVG file");
  sim.add_text("-o,--output", flags->output, "table; json: every step with its worst link; svg: with --sweep, the plot")
      .one_of({"table", "json", "svg"})
      .show_default();
  sim.on_chosen([flags, &context] { context.run = [flags] { return run_sim(*flags); }; });
}

}  // namespace gleaner::cli
