#include "common/strategy/candidate_cache.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/status_macros.h"
#include "common/plan/uplinks.h"
#include "common/strategy/choice.h"

namespace gleaner::strategy {
namespace {

constexpr double kSimilar = 1.25;  // latencies that differ by less are the same

bool are_similar(double a, double b) { return a <= kSimilar * b && b <= kSimilar * a; }

// Adds the schedules of the plan that are no candidates: the best stages of BlueConnect may have been others when the
// plan was made.
absl::Status add_schedules(const plan::Plan& plan, const topology::Topology& network, std::vector<Candidate>& all) {
  for (const collective::Spec& schedule : plan.schedules) {
    if (std::ranges::find(all, schedule, &Candidate::schedule) != all.end()) continue;
    GLN_ASSIGN_OR_RETURN(Candidate candidate, candidate_of(network, plan.workers, schedule, plan.local_ranks));
    all.push_back(std::move(candidate));
  }
  return absl::OkStatus();
}

}  // namespace

bool CandidateCache::fits(const Key& key) const {
  return choices_ != nullptr && key.workers == key_.workers && key.local_ranks == key_.local_ranks &&
         key.bits_per_second == key_.bits_per_second &&
         std::ranges::equal(key.latency_seconds, key_.latency_seconds, are_similar);
}

absl::StatusOr<std::shared_ptr<const Choices>> CandidateCache::of(const plan::Plan& plan, double round_trip_seconds,
                                                                  const JobNetwork* known) {
  GLN_ASSIGN_OR_RETURN(const topology::Topology network, network_of(plan, round_trip_seconds, known));
  Key key{plan.workers, plan.local_ranks, {}, {}};
  for (uint32_t channel = 0; channel < network.channel_count(); ++channel) {
    key.bits_per_second.push_back(network.bits_per_second(channel));
    key.latency_seconds.push_back(network.latency_seconds(channel));
  }
  Choices made;
  if (fits(key)) {
    const auto is_known = [this](const collective::Spec& schedule) {
      return std::ranges::find(choices_->candidates, schedule, &Candidate::schedule) != choices_->candidates.end();
    };
    if (std::ranges::all_of(plan.schedules, is_known)) return choices_;
    made = *choices_;
  } else {
    const uint32_t summers = network.host_count() - plan.workers;
    std::span<const MappedSpec> mapped;
    if (known != nullptr) mapped = known->mapped;
    GLN_ASSIGN_OR_RETURN(made.candidates, candidates(network, plan.workers, summers, mapped, plan.local_ranks));
    GLN_ASSIGN_OR_RETURN(made.fleet, plan::fleet_of(network, plan.workers, summers));
    key_ = std::move(key);
  }
  GLN_RETURN_IF_ERROR(add_schedules(plan, network, made.candidates));
  choices_ = std::make_shared<const Choices>(std::move(made));
  return choices_;
}

}  // namespace gleaner::strategy
