#include "common/strategy/models.h"

#include <algorithm>
#include <numbers>

#include "common/base/status_macros.h"
#include "common/collective/algorithms.h"
#include "common/plan/uplinks.h"
#include "common/strategy/choice.h"

namespace gleaner::strategy {
namespace {

// Returns what the network of a plan knows of a member; an empty place if it owns no partition.
plan::Member link_of(const plan::Member& member) {
  if (!member.is_here() || member.on_standby) return {};
  return {.bits_per_second = member.bits_per_second, .bandwidth_assumed = member.bandwidth_assumed};
}

// Returns the cut of the schedule; null: there is none.
const plan::ScheduleCut* find_cut(const Models& models, const collective::Spec& schedule) {
  const auto found = std::ranges::find_if(models.cuts, [&](const auto& cut) { return cut.first == schedule; });
  return found == models.cuts.end() ? nullptr : &found->second;
}

absl::Status add_candidates(const ModelRequest& request, Models& models) {
  const plan::Plan& plan = request.plan;
  GLN_ASSIGN_OR_RETURN(const topology::Network network,
                       network_of(plan, request.round_trip_seconds, request.overhead_seconds, request.network.get(),
                                  request.summers_at));
  const uint32_t summers = network.topology.host_count() - plan.workers;
  std::span<const MappedSpec> mapped;
  if (request.network != nullptr) mapped = request.network->mapped;
  GLN_ASSIGN_OR_RETURN(models.candidates, candidates(network, plan.workers, summers, mapped));
  GLN_ASSIGN_OR_RETURN(models.fleet, plan::fleet_of(network.topology, plan.workers, summers));
  // The best factors of BlueConnect may have been others when the plan was made.
  for (const collective::Spec& schedule : plan.schedules) {
    if (std::ranges::find(models.candidates, schedule, &Candidate::schedule) != models.candidates.end()) continue;
    GLN_ASSIGN_OR_RETURN(Candidate candidate, candidate_of(network, plan.workers, schedule));
    models.candidates.push_back(std::move(candidate));
  }
  for (const Candidate& candidate : models.candidates) {
    if (candidate.schedule.has_value()) models.cuts.push_back({*candidate.schedule, candidate.cut});
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<plan::ScheduleCut> Models::cuts_of(std::span<const collective::Spec> schedules) const {
  std::vector<plan::ScheduleCut> found;
  for (const collective::Spec& schedule : schedules) {
    found.push_back(*find_cut(*this, schedule));
  }
  return found;
}

bool ModelRequest::has_members_of(const plan::Plan& other) const {
  if (plan.workers != other.workers) return false;
  return !compares || std::ranges::equal(plan.members, other.members, {}, link_of, link_of);
}

bool ModelRequest::serves(const plan::Plan& other, const Models& models) const {
  const auto has_cut = [&](const collective::Spec& schedule) { return find_cut(models, schedule) != nullptr; };
  return has_members_of(other) && std::ranges::all_of(other.schedules, has_cut);
}

ModelRequest request_for(const plan::Plan& plan, std::shared_ptr<const JobNetwork> network, double round_trip_seconds,
                         double overhead_seconds, bool compares, std::vector<uint32_t> summers_at) {
  ModelRequest request{{}, std::move(network), std::move(summers_at), round_trip_seconds, overhead_seconds, compares};
  request.plan.workers = plan.workers;
  request.plan.members = plan.members;
  request.plan.schedules = plan.schedules;
  return request;
}

absl::StatusOr<Models> model(const ModelRequest& request) {
  Models models;
  if (request.compares) GLN_RETURN_IF_ERROR(add_candidates(request, models));
  for (const collective::Spec& spec : request.plan.schedules) {
    if (find_cut(models, spec) != nullptr) continue;
    GLN_ASSIGN_OR_RETURN(const collective::Schedule schedule, collective::make_schedule(spec, request.plan.workers));
    models.cuts.push_back({spec, cut_of(schedule)});
  }
  return models;
}

void warm_up(const Models& models, absl::FunctionRef<bool()> goes_on) {
  if (models.candidates.empty()) return;  // only cuts were asked for, so the fleet is empty, too
  for (double bytes = 64; bytes <= 256 << 20; bytes *= std::numbers::sqrt2) {
    const auto size = static_cast<uint64_t>(bytes);
    const NewTensor tensor{.bytes = size, .by_default = plan::default_partition_bytes(models.fleet, size)};
    for (const Candidate& candidate : models.candidates) {
      if (!goes_on()) return;
      seconds_of_new(std::span(&candidate, 1), tensor);
    }
  }
}

}  // namespace gleaner::strategy
