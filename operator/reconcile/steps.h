// A Step is one write or call that the operator makes for a TrainingJob. It is a value: a step carries all facts that
// it needs. DecisionExecutor (operator/service/decision_executor.h) carries the steps of a Decision out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/api/reduction_plan.h"
#include "common/api/training_job.h"
#include "coordinator/roster/options.h"
#include "coordinator/status/job_state.h"
#include "operator/reconcile/pod_view.h"

namespace gleaner::reconcile {

struct PodRemoval {
  std::string name, uid;
};

struct PodRelease {
  std::string name;
  std::vector<std::string> gates;  // scheduling gates that remain: all but kGangGate
};

// The rank that a worker's pod gets as a label.
struct PodRank {
  std::string name;
  uint32_t rank = 0;
};

struct EventNote {
  bool warning = false;
  std::string reason, message;
  std::string cause;  // reason of a change of summers, for metrics; else empty
  // Recorded even if the status that shows the same fact can't be written.
  bool urgent = false;
};

// A member whose end the API server shows. The coordinator itself may not notice the end.
struct EndedMember {
  coordinator::Role role;
  uint32_t index;
  absl::Status how;
};

struct SummerRelease {
  uint32_t index;
  EventNote note;  // the Event to record when the release is reported to the session
};

// A member whose link has another bandwidth than the plan assumes.
struct MemberBandwidth {
  coordinator::Role role;
  uint32_t index;
  double bits_per_second;
};

// The groups of the cluster that have the machine of a summer.
struct SummerGroups {
  uint32_t index;
  std::vector<std::string> names;  // smallest group first; empty: the machine is in no group
};

// Checks that the API server has none of these pods, which seem to be gone: the pod cache may be behind.
struct ConfirmMissing {
  std::vector<std::string> pods;
};
// Writes the status if it differs from the job's.
struct WriteStatus {
  api::TrainingJobStatus status;
  // The write is left out if no step has failed and no time of the next decision is set: the watch of the new pods soon
  // causes a decision that writes the same status.
  bool optional = false;
};
// Ends the coordinator session, for the reason `why`.
struct EndSession {
  std::string why;
};
// Creates the ConfigMap with the CA, which pods and sessions need.
struct EnsureBootstrap {
  bool starts_workers = false;  // the workers that the decision creates need it
};
// Creates worker_service().
struct CreateService {};
struct CreateWorkers {
  std::vector<nlohmann::json> pods;
};
// Creates the pods of summers. Their numbers are below the status.nextSummer that was written before.
struct CreateSummers {
  std::vector<nlohmann::json> pods;
  EventNote note;  // the Event to record once one of the pods exists
};
// Removes the gate kGangGate of these workers.
struct ReleaseWorkers {
  std::vector<PodRelease> pods;
};
// Creates the ConfigMap with the ranks of the attempt, unless it exists.
struct CreateRankMap {
  nlohmann::json object;
};
// Labels the pods of workers with their ranks. A kubelet that has not found the ConfigMap tries again at once when its
// pod changes, and after ten seconds otherwise.
struct LabelWorkers {
  std::vector<PodRank> pods;
};
struct WritePlan {
  api::ReductionPlan plan;
};
// Opens the session of the job's attempt, session_of(job), if it is not open.
struct OpenSession {
  coordinator::Options options;
};
// Reports facts about members to the session.
struct TellSession {
  std::optional<uint32_t> summers;     // a smaller number of summers to wait for before the first plan
  std::vector<EndedMember> ended;      // members that have ended
  std::vector<SummerRelease> release;  // summers that the session's next plan is to leave out
  std::vector<MemberBandwidth> bandwidths;
  std::vector<SummerGroups> summer_groups;  // of the summers that have a machine
};
struct RemovePods {
  std::vector<PodRemoval> pods;
};
struct RecordEvents {
  std::vector<EventNote> events;
};
struct RemoveJob {};

using Action = std::variant<ConfirmMissing, WriteStatus, EndSession, EnsureBootstrap, CreateService, CreateWorkers,
                            CreateSummers, ReleaseWorkers, CreateRankMap, LabelWorkers, WritePlan, OpenSession,
                            TellSession, RemovePods, RecordEvents, RemoveJob>;

struct Step {
  Action action;
  // The earlier steps of the decision, by place, without which this one must not be carried out. It is skipped if one
  // of them failed or was skipped. All other failures leave it alone.
  std::vector<size_t> needs;
};

// Returns the step's purpose as it follows "can't": "write the ReductionPlan".
const char* purpose_of(const Action& action);

// Adds the pod to `removals` unless it is being deleted already.
inline void add_removal(const PodView& pod, std::vector<PodRemoval>& removals) {
  if (!pod.deletion.has_value()) removals.push_back({pod.name, pod.uid});
}

}  // namespace gleaner::reconcile
