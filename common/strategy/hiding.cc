#include "common/strategy/hiding.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/plan/placements.h"
#include "common/strategy/candidates.h"
#include "common/topology/builders.h"

namespace gleaner::strategy {
namespace {

struct Slowest {
  double worker = 0;
  double server = 0;
};

Slowest slowest_of(const plan::Fleet& fleet) {
  const double worker = *std::ranges::min_element(fleet.worker_bits_per_second);
  if (fleet.summer_bits_per_second.empty()) return {worker, worker};
  return {worker, *std::ranges::min_element(fleet.summer_bits_per_second)};
}

// Completes the account of a way of summing whose communication takes `communication_seconds`.
Hiding account(std::string name, uint32_t summers, const plan::LinkLoad& load, double communication_seconds,
               const plan::Fleet& fleet, double bytes, double compute_seconds,
               const std::optional<plan::Prices>& prices) {
  Hiding made{.name = std::move(name), .summers = summers};
  made.worker_bits_per_second = load.worker * bytes * 8 / compute_seconds;
  made.server_bits_per_second = load.server * bytes * 8 / compute_seconds;
  made.communication_seconds = communication_seconds;
  made.step_seconds = std::max(communication_seconds, compute_seconds);
  made.hidden = communication_seconds <= compute_seconds * (1 + 1e-12);
  if (!prices.has_value()) return made;
  made.total_price = prices->total(fleet.n(), summers);
  made.step_price = prices->of_step(*made.total_price, made.step_seconds);
  made.throughput_per_1000 = plan::throughput_per_1000(*made.total_price, made.step_seconds);
  return made;
}

}  // namespace

absl::StatusOr<std::vector<Hiding>> hide(const plan::Fleet& fleet, double bytes, double compute_seconds,
                                         const std::optional<plan::Prices>& prices) {
  GLN_RETURN_IF_ERROR(plan::validate(fleet));
  const Slowest slowest = slowest_of(fleet);
  std::vector<Hiding> all;
  for (const plan::ServerPlacement placement : plan::kServerPlacements) {
    const uint32_t servers = fleet.k() > 0 ? fleet.k() : fleet.n();
    const plan::LinkLoad load = plan::load_of(placement, fleet.n(), servers);
    const uint32_t extra = plan::extra_machines(placement, servers);
    const double server = extra > 0 ? slowest.server : slowest.worker;
    const double seconds = bytes * 8 * std::max(load.worker / slowest.worker, load.server / server);
    all.push_back(
        account(std::string(plan::name_of(placement)), extra, load, seconds, fleet, bytes, compute_seconds, prices));
  }
  // With links of 8 bit/s, the seconds per byte are the bytes that the busiest link carries for each byte.
  GLN_ASSIGN_OR_RETURN(topology::Topology star, topology::star(fleet.n() + fleet.k(), {8, 0, 0}));
  GLN_ASSIGN_OR_RETURN(const std::vector<Candidate> strategies,
                       candidates(topology::make_network(std::move(star)), fleet.n(), fleet.k()));
  for (const Candidate& candidate : strategies) {
    const double busiest = candidate.model.stream_seconds_per_byte;
    const bool by_summers = candidate.is_by_summers();
    const double seconds = by_summers ? plan::bound_seconds(fleet, bytes) : busiest * bytes * 8 / slowest.worker;
    all.push_back(account(name_of(candidate), by_summers ? fleet.k() : 0, {busiest, busiest}, seconds, fleet, bytes,
                          compute_seconds, prices));
  }
  return all;
}

}  // namespace gleaner::strategy
