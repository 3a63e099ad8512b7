#include "operator/reconcile/attempt_session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/job_network.h"
#include "operator/reconcile/plan_object.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/rank_assignment.h"
#include "operator/reconcile/strategy.h"
#include "operator/reconcile/summers.h"

namespace gleaner::reconcile {
namespace {

constexpr absl::Duration kReturnPatience = absl::Seconds(20);  // for a member whose stream broke to reconnect

absl::Status how_it_failed(const PodView& pod) {
  if (!pod.ending.exit.has_value()) return absl::UnavailableError(absl::StrCat("pod ", pod.name, " is lost"));
  return absl::AbortedError(absl::StrCat("pod ", pod.name, " ended with ", pod.ending.exit->code));
}

}  // namespace

absl::StatusOr<coordinator::Options> AttemptSession::options() const {
  std::vector<const PodView*> summers = running_summers(observation_);
  if (is_settled(observation_)) summers = pods_of(planned_summers(observation_));
  coordinator::Options options;
  options.job = session_of(job_);
  options.workers = job_.workers.replicas;
  options.summers = wants_summers(job_) ? static_cast<uint32_t>(summers.size()) : 0;
  options.local_ranks = job_.workers.local_ranks;
  options.worker_bits_per_second = known_bits_per_second(observation_, workers_.pods());
  // A session that resumes learns its summers and their bandwidths from its members.
  const bool resumes = job_.status.epoch > 0;
  if (options.summers > 0 && !resumes) options.summer_bits_per_second = known_bits_per_second(observation_, summers);
  options.partition_bytes = job_.communication.partition_bytes;
  GLN_ASSIGN_OR_RETURN(options.reduction.strategy, strategy_of(job_));
  options.reduction.bits = bits_of(job_);
  if (const api::RankMap* const map = rank_map_of(job_)) {
    options.indices.workers = map->workers;
    if (!observation_.session.has_value())
      GLN_RETURN_IF_ERROR(set_network(observation_, workers_, summers, *map, options));
  }
  options.start_timeout = job_.run_policy.start_deadline;
  options.return_timeout = kReturnPatience;
  return options;
}

std::vector<EndedMember> AttemptSession::ended_workers() const {
  std::vector<EndedMember> ended;
  const std::vector<const PodView*>& pods = workers_.pods();
  for (uint32_t i = 0; i < pods.size(); ++i) {
    if (workers_.has_succeeded(i)) {
      ended.push_back({coordinator::Role::kWorker, i, absl::OkStatus()});
    } else if (pods[i] != nullptr && pods[i]->finished()) {
      ended.push_back({coordinator::Role::kWorker, i, how_it_failed(*pods[i])});
    }
  }
  return ended;
}

std::optional<EarlyLoss> AttemptSession::early_loss() const {
  using Phase = coordinator::JobState::Phase;
  const bool gathers = observation_.session.has_value() && observation_.session->phase == Phase::kGathering;
  if (!wants_summers(job_) || !gathers || job_.status.epoch > 0 || !is_settled(observation_)) return std::nullopt;
  uint32_t joined = 0;
  bool all_alive = true, dead_joined = false;
  for (const SummerSeat& summer : planned_summers(observation_)) {
    const coordinator::MemberState* member = find_summer_member(*observation_.session, summer.index);
    const bool has_joined = member != nullptr && member->joined;
    const bool alive = summer.pod != nullptr && summer.pod->alive();
    all_alive = all_alive && alive;
    dead_joined = dead_joined || (has_joined && !alive);
    joined += has_joined && alive;
  }
  if (all_alive) return std::nullopt;
  // Summers that join later are admitted once the job has begun.
  return EarlyLoss{dead_joined ? std::nullopt : std::optional<uint32_t>(joined)};
}

}  // namespace gleaner::reconcile
