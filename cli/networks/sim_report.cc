#include "cli/networks/sim_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"

namespace gleaner::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;
using netsim::StepTime;
using topology::Topology;

std::string link_of(const StepTime& step, const Topology& topology) {
  if (step.worst_link.flows == 0) return "-";
  const uint32_t channel = step.worst_link.channel;
  return absl::StrCat(topology.name(topology.from(channel)), " -> ", topology.name(topology.to(channel)));
}

// Returns whether two steps share a line of the table.
bool are_alike(const StepTime& a, const StepTime& b) {
  return std::abs(a.seconds - b.seconds) <= 0.02 * a.seconds && a.worst_link.flows == b.worst_link.flows;
}

// Returns the time and the bound.
std::string against_bound(const Simulation& simulation, const Topology& topology) {
  const double seconds = simulation.run.seconds, bound = simulation.bound.seconds;
  if (seconds <= 0) return "nothing moves";
  if (bound <= 0) return absl::StrCat(format_seconds(seconds), " of latency alone");
  return absl::StrFormat("%s; %s is the bound of all strategies, by %s (%.1f %%)", format_seconds(seconds),
                         format_seconds(bound), plan::describe_limits(simulation.bound, topology),
                         bound / seconds * 100);
}

}  // namespace

std::string to_json(const Simulation& simulation, const Topology& topology) {
  OrderedJson steps = OrderedJson::array();
  for (const StepTime& step : simulation.run.steps) {
    const uint32_t channel = step.worst_link.channel;
    OrderedJson link;
    if (step.worst_link.flows > 0) {
      link = {{"from", topology.name(topology.from(channel))},
              {"to", topology.name(topology.to(channel))},
              {"flows", step.worst_link.flows}};
    }
    steps.push_back({{"seconds", step.seconds}, {"worst_link", std::move(link)}});
  }
  const OrderedJson json = {{"bytes", simulation.bytes},
                            {"seconds", simulation.run.seconds},
                            {"bound_seconds", simulation.bound.seconds},
                            {"bound_by", plan::describe_limits(simulation.bound, topology)},
                            {"steps", std::move(steps)},
                            {"events", simulation.run.events}};
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string to_table(const Simulation& simulation, const Topology& topology, const std::string& title) {
  std::string text =
      absl::StrFormat("%s\n%s, %d events\n\n%-12s %-10s %5s  %s\n", title, against_bound(simulation, topology),
                      simulation.run.events, "steps", "seconds", "flows", "worst link");
  const std::vector<StepTime>& steps = simulation.run.steps;
  for (size_t first = 0, next; first < steps.size(); first = next) {
    double sum = 0;
    for (next = first; next < steps.size() && are_alike(steps[first], steps[next]); ++next) sum += steps[next].seconds;
    const auto count = static_cast<double>(next - first);
    const std::string range = next == first + 1 ? absl::StrCat(first) : absl::StrCat(first, "-", next - 1);
    absl::StrAppendFormat(&text, "%-12s %-10s %5d  %s\n", range, format_seconds(sum / count),
                          steps[first].worst_link.flows, link_of(steps[first], topology));
  }
  return text;
}

}  // namespace gleaner::cli
