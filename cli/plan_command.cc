#include "cli/plan_command.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/collective_bound.h"
#include "cli/plan_output.h"
#include "cli/print.h"
#include "common/base/status_macros.h"
#include "common/plan/explain.h"
#include "common/plan/explain_uplinks.h"
#include "common/plan/model.h"
#include "common/plan/uplinks.h"
#include "common/strategy/advice.h"
#include "common/strategy/places.h"

namespace gleaner::cli {
namespace {

// Returns the bandwidths of one role ("worker" or "summer"): those of its list, or else `each` for each machine.
absl::StatusOr<std::vector<double>> bandwidths_of(absl::string_view role, int64_t count,
                                                  const std::vector<double>& list, std::optional<double> each) {
  const std::string count_flag = absl::StrCat("--", role, "s");
  const std::string list_flag = absl::StrCat("--", role, "-bandwidths");
  if (!list.empty()) {
    if (count >= 0 && static_cast<size_t>(count) != list.size()) {
      return absl::InvalidArgumentError(absl::StrCat(list_flag, " lists ", list.size(), " bandwidths, but ", count_flag,
                                                     " is ", count, ": give one for each, or none"));
    }
    return list;
  }
  if (count <= 0) return std::vector<double>();
  if (!each) return absl::InvalidArgumentError(absl::StrCat("give --bandwidth or ", list_flag));
  return std::vector<double>(static_cast<size_t>(count), *each);
}

absl::StatusOr<plan::Fleet> fleet_of(const PlanFlags& flags) {
  if (flags.workers == -1 && flags.bandwidths.workers.empty()) {
    return absl::InvalidArgumentError("give --workers N, for example --workers 8");
  }
  GLN_ASSIGN_OR_RETURN(const Bandwidths given, parse_bandwidths(flags.bandwidths));
  plan::Fleet fleet;
  GLN_ASSIGN_OR_RETURN(fleet.worker_bits_per_second, bandwidths_of("worker", flags.workers, given.workers, given.each));
  GLN_ASSIGN_OR_RETURN(fleet.summer_bits_per_second, bandwidths_of("summer", flags.summers, given.summers, given.each));
  return fleet;
}

uint32_t workers_of(const PlanFlags& flags) { return static_cast<uint32_t>(flags.workers); }
uint32_t summers_of(const PlanFlags& flags) { return static_cast<uint32_t>(std::max(flags.summers, int64_t{0})); }

// Returns the network of --topology, whose links --bandwidth and --uplink describe; nothing without it.
absl::StatusOr<std::optional<topology::Topology>> network_of(const PlanFlags& flags) {
  if (flags.topology.text.empty()) {
    if (flags.topology.uplink.empty() && flags.topology.placement.empty()) return std::nullopt;
    return absl::InvalidArgumentError("--uplink and --placement: give --topology, too");
  }
  if (!flags.bandwidths.workers.empty() || !flags.bandwidths.summers.empty()) {
    return absl::InvalidArgumentError(
        "give either --topology or lists of bandwidths: the links of the topology have the bandwidths");
  }
  if (flags.workers == -1) return absl::InvalidArgumentError("give --workers N, for example --workers 8");
  TopologyFlags topology = flags.topology;
  topology.bandwidth = flags.bandwidths.each;
  GLN_ASSIGN_OR_RETURN(const topology::Topology made, topology_of(topology));
  return placed(topology, made, workers_of(flags), summers_of(flags));
}

absl::StatusOr<plan::Fleet> fleet_in(const PlanFlags& flags, const topology::Topology& topology) {
  auto fleet = plan::fleet_of(topology, workers_of(flags), summers_of(flags));
  if (fleet.ok()) return fleet;
  return absl::InvalidArgumentError(absl::StrCat("--topology: ", fleet.status().message()));
}

// Prints the plan of machines whose own links limit a step.
absl::Status run_fleet_plan(const PlanFlags& flags, const plan::Fleet& fleet, std::vector<plan::Tensor> tensors) {
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan,
                       plan_of(flags, fleet, std::move(tensors), static_cast<uint32_t>(flags.local_ranks)));
  return print_plan(flags, plan, plan::explain(plan), {});
}

// Returns who is where in a network, and what else could be done there.
absl::StatusOr<PlanContext> context_of(const PlanFlags& flags, const topology::Topology& topology,
                                       const plan::Fleet& fleet, const std::vector<plan::Tensor>& tensors) {
  GLN_ASSIGN_OR_RETURN(const auto partition_bytes, parse_partition_bytes(flags.partition_bytes));
  PlanContext context{.advice = PricedAdvice{.workers = fleet.n()}};
  GLN_ASSIGN_OR_RETURN(context.advice->advice,
                       strategy::advise(topology, fleet.n(), fleet.k(), tensors, partition_bytes.value_or(0)));
  GLN_ASSIGN_OR_RETURN(context.advice->prices, read_prices(flags.hiding.prices));
  if (!flags.hiding.compute_time.empty()) {
    GLN_ASSIGN_OR_RETURN(context.advice->compute_seconds, parse_compute_time(flags.hiding.compute_time));
  }
  const std::string places = strategy::describe_places(topology, fleet.n(), fleet.k());
  if (!places.empty()) context.head = absl::StrCat(places, "\n\n");
  for (uint32_t member = 0; member < fleet.n() + fleet.k(); ++member) {
    context.nodes.push_back(topology.hosts()[member].name);
  }
  return context;
}

// Prints the plan of machines in a network, whose links between switches limit a step, too.
absl::Status run_network_plan(const PlanFlags& flags, const topology::Topology& topology, const plan::Fleet& fleet,
                              std::vector<plan::Tensor> tensors) {
  GLN_RETURN_IF_ERROR(plan::validate(fleet));
  const auto loads = plan::link_loads(topology, fleet.n(), fleet.k());
  if (!loads.ok()) return absl::InvalidArgumentError(absl::StrCat("--topology: ", loads.status().message()));
  GLN_ASSIGN_OR_RETURN(const plan::UplinkBound bound,
                       plan::bound_with_uplinks(topology, *loads, fleet.n(), fleet.k(), total_bytes(tensors)));
  GLN_ASSIGN_OR_RETURN(const PlanContext context, context_of(flags, topology, fleet, tensors));
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan, plan_of(flags, fleet, std::move(tensors), 1, bound.shares));
  plan::Explanation explanation = plan::explain(plan);
  GLN_RETURN_IF_ERROR(plan::explain_uplinks(topology, *loads, bound, plan, explanation));
  return print_plan(flags, plan, std::move(explanation), context);
}

}  // namespace

absl::Status run_plan(const PlanFlags& flags) {
  GLN_RETURN_IF_ERROR(check(flags));
  GLN_ASSIGN_OR_RETURN(const std::optional<topology::Topology> topology, network_of(flags));
  GLN_ASSIGN_OR_RETURN(const plan::Fleet fleet, topology ? fleet_in(flags, *topology) : fleet_of(flags));
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> tensors, tensors_of(flags.tensors));
  if (topology) return run_network_plan(flags, *topology, fleet, std::move(tensors));
  if (flags.collective.name == "all-reduce") return run_fleet_plan(flags, fleet, std::move(tensors));
  GLN_ASSIGN_OR_RETURN(const std::string text,
                       collective_bound(flags.collective, fleet, total_bytes(tensors), flags.output));
  return print(text);
}

}  // namespace gleaner::cli
