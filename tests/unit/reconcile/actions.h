// Actions holds the actions of a decision by their kind, for tests that look at one kind.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/decision.h"

namespace gleaner::reconcile {

struct Actions {
  std::vector<std::string> confirm_missing;
  std::optional<std::string> end_session;
  bool service = false;
  std::vector<nlohmann::json> create;          // worker pods
  std::vector<nlohmann::json> create_summers;  // summer pods
  std::vector<PodRelease> release;
  std::optional<nlohmann::json> rank_map;
  std::vector<PodRank> rank_labels;
  std::optional<api::ReductionPlan> plan;
  std::optional<coordinator::Options> session;
  TellSession tell;
  std::vector<PodRemoval> remove;
  bool remove_job = false;
  api::TrainingJobStatus status;
  std::vector<EventNote> events;
  std::optional<absl::Duration> requeue_after;
};

// Returns the actions of the decision's steps. Fails the test if the decision writes the status never or twice.
Actions actions_of(const Decision& decision);

}  // namespace gleaner::reconcile
