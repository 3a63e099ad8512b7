// Draft collects the actions of a decision. The parts of decide() fill it in any order; finish() brings the actions
// into the order in which they are carried out. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/decision.h"
#include "operator/reconcile/status_update.h"

namespace gleaner::reconcile {

struct Draft {
  std::vector<std::string> confirm_missing;     // pods that seem to be gone; if one exists, nothing else is carried out
  std::optional<std::string> end_session;       // the reason to end the coordinator session
  std::vector<nlohmann::json> create;           // worker pods
  CreateSummers create_summers;                 // its step is left out if it has no pods
  std::vector<PodRelease> release;              // workers whose gate opens
  std::optional<nlohmann::json> rank_map;       // the ConfigMap with the ranks
  std::vector<PodRank> rank_labels;             // workers that get their rank as a label
  std::optional<api::ReductionPlan> plan;       // to write
  std::optional<coordinator::Options> session;  // the session to open
  bool plan_begins = false;                     // `plan` records with which summers the session begins
  TellSession tell;                             // reported if `session` is set
  std::vector<PodRemoval> remove;               // pods to delete
  bool remove_job = false;
};

// Returns the decision with the actions of `draft`, and with the status, the Events and the time of the next decision
// of `update`.
//
// Pods that seem to be gone are checked first. Facts that the objects can't show again are then written before all
// other actions: a new attempt number, the ranks of an attempt, a new number of a summer, the success of a worker, the
// suspension (pods that it removes may end with 0), and the job's end. Nothing else is carried out if one of these
// fails. Each other step needs only the steps that make what it uses (Step::needs),
// so that a refused write of one kind does not keep the job from everything else.
Decision finish(const api::TrainingJob& job, Draft draft, StatusUpdate update);

}  // namespace gleaner::reconcile
