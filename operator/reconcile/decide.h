// What is to be done about one TrainingJob now. Pure and level-triggered: everything follows from what is observed;
// nothing is remembered between calls but what status and pods say, so that any replica of the operator can go on.
//
// The life of a job:   Pending ─ pods made ─▶ Starting ─ all run ─▶ Running ─ all end with 0 ─▶ Succeeded
//                         ▲                      │                     │
//                         │                not all run in time     a member is lost ─▶ Restarting (a new attempt) or
//                         Failed └── released ◀─────────┘
// An attempt is one set of pods and one coordinator session; its number is in the pods' names and labels. A new attempt
// is first written into the job's status, guarded by its resource version, and only then are its pods made: two
// operators can't make different ones.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "operator/autoscale/autoscale.h"
#include "operator/coordinator/options.h"
#include "operator/coordinator/service.h"
#include "operator/placement/placement.h"
#include "operator/reconcile/pod_view.h"
#include "operator/reconcile/pods.h"
#include "operator/types/reduction_plan.h"
#include "operator/types/training_job.h"

namespace gleaner::reconcile {

struct NodeView {
  bool exists = false;
  bool ready = false;
  double bits_per_second = 0;  // by its profile; 0: not known
};

// What the autoscaler wants of a job that has begun.
struct Wish {
  autoscale::Verdict verdict;
  uint32_t attempt = 0;      // that it was made for
  uint32_t next_summer = 0;  // index for the addition: used once, however often the wish is looked at
  std::vector<std::pair<uint32_t, double>> spare_bits_per_second;  // by summer: what its machine can spare it now
  std::vector<uint32_t> overdue;  // of those to be removed: they were told to go long ago
};

struct Observed {
  types::TrainingJob job;
  std::vector<std::shared_ptr<const PodView>> pods;  // that this job controls, of all attempts
  std::optional<types::ReductionPlan> plan;
  std::optional<coordinator::JobState> session;  // of the job's attempt; none: this operator does not coordinate it yet
  std::optional<Wish> wish;                      // none: the autoscaler has not looked yet
  absl::Duration session_ended_for;              // how long the session has had an outcome
  std::function<NodeView(const std::string& node)> node;
  // Machines that could take a summer of this job, whose workers are on these nodes, best first.
  std::function<std::vector<placement::Candidate>(const std::vector<std::string>& worker_nodes)> candidates;
  absl::Time now;
};

struct PodRemoval {
  std::string name, uid;
};

struct PodRelease {
  std::string name;
  std::vector<std::string> gates;  // that stay: others than ours
};

struct EventNote {
  bool warning = false;
  std::string reason, message;
  std::string cause;  // of a change of summers: one word, for metrics
};

// An end that the API server shows and the coordinator may not see.
struct EndedMember {
  coordinator::Role role;
  uint32_t index;
  absl::Status how;
};

struct SummerRelease {
  uint32_t index;
  EventNote note;  // when it is told
};

// What a member's link is worth now, where the plan reckons with something else.
struct MemberBandwidth {
  coordinator::Role role;
  uint32_t index;
  double bits_per_second;
};

struct Decision {
  // In the order in which they are carried out; whoever carries them out stops at the first that fails and tries again.
  std::vector<std::string> confirm_missing;     // pods: if one of them is there after all, forget the rest
  std::optional<std::string> end_session;       // why: forget the attempt's coordinator session
  bool service = false;                         // worker_service() and the bootstrap ConfigMap are needed
  std::vector<nlohmann::json> create;           // workers
  std::vector<nlohmann::json> create_summers;   // only once status.next_summer is on record
  std::vector<PodRelease> release;              // workers whose scheduling gate opens
  std::optional<types::ReductionPlan> plan;     // to be written
  std::optional<coordinator::Options> session;  // to be there; its job is session_of(job)
  bool may_resume = false;                      // the session may have begun under another operator
  std::optional<uint32_t> session_summers;      // that it waits for, of fewer than it was opened with
  std::vector<EndedMember> ended;               // for the session
  std::vector<SummerRelease> release_summers;   // by the session: the next plan does without them
  std::vector<MemberBandwidth> bandwidths;      // for the session
  std::vector<PodRemoval> remove;               // pods
  bool remove_job = false;
  types::TrainingJobStatus status;  // to be written if it differs
  std::vector<EventNote> events;
  std::optional<absl::Duration> look_again;  // even if nothing changes
};

Decision decide(const Observed& observed, const Settings& settings);

// The API server refused to create a pod: what the job's status and events should say of it, and when to try again.
void note_refusal(const types::TrainingJob& job, const absl::Status& why, absl::Time now, Decision& decision);

// What `kubectl get tj` shows in one word.
std::string phase_of(const std::vector<types::Condition>& conditions);

}  // namespace gleaner::reconcile
