#include "operator/reconcile/summers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/api/pod.h"
#include "common/base/first_few.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/pods.h"

namespace gleaner::reconcile {

bool wants_summers(const api::TrainingJob& job) {
  return job.workers.replicas > 1 && api::uses_summers(job.communication.strategy) && job.communication.summers.max > 0;
}

placement::SummerRequest summer_request(const api::TrainingJob& job, const std::vector<std::string>& worker_nodes) {
  placement::SummerRequest request;
  request.job = job.meta.key();
  if (const auto asked = api::parse_requests(summer_resources(job)); asked.ok()) {
    request.cpus = placement::needed_cpus(asked->cpus);
    request.memory_bytes = asked->memory_bytes;
  }  // otherwise the API server refuses the pod, with a reason
  request.max_bits_per_second = job.communication.summers.bits_per_second;
  request.worker_nodes.insert(worker_nodes.begin(), worker_nodes.end());
  return request;
}

std::vector<const PodView*> summers_of_attempt(const Observation& observation) {
  std::vector<const PodView*> summers;
  for (const auto& pod : observation.pods) {
    if (pod->role == kSummer && pod->attempt == observation.job.status.attempt) summers.push_back(pod.get());
  }
  std::sort(summers.begin(), summers.end(), [](const auto* a, const auto* b) { return a->index < b->index; });
  return summers;
}

std::vector<const PodView*> running_summers(const Observation& observation) {
  std::vector<const PodView*> summers =
      members_of_attempt(observation, kSummer, observation.job.communication.summers.max);
  const auto stop = std::find_if(summers.begin(), summers.end(), [](const PodView* pod) {
    return pod == nullptr || pod->phase != PodView::Phase::kRunning || pod->deletion.has_value();
  });
  summers.erase(stop, summers.end());
  return summers;
}

const coordinator::MemberState* find_summer_member(const coordinator::JobState& session, uint32_t index) {
  for (const coordinator::MemberState& member : session.members) {
    if (member.role == coordinator::Role::kSummer && member.index == index) return &member;
  }
  return nullptr;
}

CreateSummers add_summers(const Observation& observation, const PodSettings& settings,
                          const std::vector<placement::Candidate>& machines, const std::string& cause,
                          const std::string& why, StatusUpdate& update) {
  api::TrainingJobStatus& status = update.status;
  // Skips the numbers of pods that were created before nextSummer was persisted.
  for (const PodView* pod : summers_of_attempt(observation)) {
    status.next_summer = std::max(status.next_summer, pod->index + 1);
  }
  std::vector<nlohmann::json> pods;
  std::vector<std::string> names;
  for (const placement::Candidate& machine : machines) {
    names.push_back(absl::StrCat("summer-", status.next_summer, " on ", machine.node));
    pods.push_back(summer_pod(observation.job, status.next_summer++, machine, settings));
  }
  status.summers.last_change = absl::StrCat(first_few(names), " added: ", cause, ", ", why);
  status.summers.last_change_time = observation.now;
  return {std::move(pods), {false, "SummerAdded", status.summers.last_change, cause}};
}

}  // namespace gleaner::reconcile
