// Decision holds the actions of the operator for one TrainingJob. It is a value, which does not change after decide()
// has returned it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/api/reduction_plan.h"
#include "common/api/training_job.h"
#include "coordinator/options.h"
#include "coordinator/service.h"
#include "operator/reconcile/pod_view.h"

namespace gleaner::reconcile {

struct PodRemoval {
  std::string name, uid;
};

struct PodRelease {
  std::string name;
  std::vector<std::string> gates;  // scheduling gates that remain: all but kGangGate
};

struct EventNote {
  bool warning = false;
  std::string reason, message;
  std::string cause;  // reason of a change of summers, for metrics; else empty
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

// operator/service/steps.h defines the order in which these actions are carried out.
struct Decision {
  std::vector<std::string> confirm_missing;  // pods that seem to be gone; if one exists, no other action is carried out
  std::optional<std::string> end_session;    // ends the coordinator session, for this reason
  bool service = false;                      // create worker_service(), if the job has several workers
  std::vector<nlohmann::json> create;        // worker pods
  std::vector<nlohmann::json> create_summers;   // summer pods, once status.nextSummer is written
  std::vector<PodRelease> release;              // workers whose gate kGangGate is removed
  std::optional<api::ReductionPlan> plan;       // to write
  std::optional<coordinator::Options> session;  // the session to open if it is not open; its job is session_of(job)
  std::optional<uint32_t> session_summers;      // a smaller number of summers to wait for before the first plan
  std::vector<EndedMember> ended;               // to report to the session
  std::vector<SummerRelease> release_summers;   // summers that the session's next plan is to leave out
  std::vector<MemberBandwidth> bandwidths;      // to report to the session
  std::vector<PodRemoval> remove;               // pods to delete
  bool remove_job = false;
  api::TrainingJobStatus status;  // written if it differs
  std::vector<EventNote> events;
  std::optional<absl::Duration> requeue_after;  // decide again after this time even if nothing changes
};

// Adds the pod to `removals` unless it is being deleted already.
inline void add_removal(const PodView& pod, std::vector<PodRemoval>& removals) {
  if (!pod.deletion.has_value()) removals.push_back({pod.name, pod.uid});
}

}  // namespace gleaner::reconcile
