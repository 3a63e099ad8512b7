// The strategy that a TrainingJob asks for: as the coordinator takes it, whether the job gets summers, and its changes.
// Pure.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/api/training_job.h"
#include "common/strategy/strategy.h"
#include "coordinator/roster/options.h"
#include "coordinator/status/job_state.h"
#include "operator/reconcile/status_update.h"

namespace gleaner::reconcile {

// Returns coordinator::Options::Reduction::strategy of the job. InvalidArgument: the strategy has no such parameters.
absl::StatusOr<strategy::Strategy> strategy_of(const api::TrainingJob& job);

// Returns coordinator::Options::Reduction::bits of the job.
std::optional<plan::Bits> bits_of(const api::TrainingJob& job);

// Returns OK, or InvalidArgument if the strategy does not serve the job's number of workers or its bits. It makes the
// schedule, which takes up to a second for thousands of workers.
absl::Status check_strategy(const api::TrainingJob& job);

// Writes into the status why a job that asks for summers gets none, if its strategy uses none.
void explain_no_summers(const api::TrainingJob& job, api::SummersStatus& summers);

// Writes the strategies of the plan in force and its class of bits into the status. If the strategies differ from those
// of the status before, it adds the Event StrategyChanged, which has the times of steps that decided a change by Auto.
void report_strategy(const coordinator::JobState& session, StatusUpdate& update);

}  // namespace gleaner::reconcile
