// Steps are the writes and calls that a Decision leads to, in order. Pure: steps_of() only orders them;
// DecisionExecutor (decision_executor.h) carries them out.
//
// Pods that seem to be gone are checked first, since the pod cache may be behind. Facts that the objects can't show
// again are then written before all other actions: a new attempt number, a new number of a summer, the success of a
// worker, and the job's end. Pods are removed, the status is written, and Events are recorded even after a step has
// failed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "common/api/training_job.h"
#include "operator/reconcile/decision.h"

namespace gleaner::operation {

struct ConfirmMissing {
  std::vector<std::string> pods;
};
struct WriteStatus {
  // The write may be left out if all steps succeeded and Outcome::requeue_after is not set: the watch of the new pods
  // soon causes the next reconcile, which writes the same status.
  bool optional = false;
};
struct EndSession {
  std::string why;
};
struct EnsureBootstrap {};  // the ConfigMap with the CA, which pods and sessions need
struct CreateService {};
struct CreateWorkers {
  std::vector<nlohmann::json> pods;
};
struct CreateSummers {
  std::vector<nlohmann::json> pods;
};
struct ReleaseWorkers {
  std::vector<reconcile::PodRelease> pods;
};
struct WritePlan {
  api::ReductionPlan plan;
};
struct OpenSession {
  coordinator::Options options;
};
struct TellSession {};  // reports the facts about members in the decision to the session
struct RemovePods {
  std::vector<reconcile::PodRemoval> pods;
};
struct RecordEvents {};
struct RemoveJob {};

using Action =
    std::variant<ConfirmMissing, WriteStatus, EndSession, EnsureBootstrap, CreateService, CreateWorkers, CreateSummers,
                 ReleaseWorkers, WritePlan, OpenSession, TellSession, RemovePods, RecordEvents, RemoveJob>;

struct Step {
  // kNormal: skipped after a failure. kFirst: if it fails, no other step runs. kAlways: runs after a failure, too.
  enum class Order { kNormal, kFirst, kAlways };
  Action action;
  Order order = Order::kNormal;
};

// Returns the steps of `decision`, in the order in which they are carried out.
std::vector<Step> steps_of(const api::TrainingJob& job, const reconcile::Decision& decision);

}  // namespace gleaner::operation
