// Summary is the account of a job: its members, its steps, and the gain by its summers. It is written as a table for
// people and as JSON for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/control/report.h"
#include "common/plan/plan.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/rank_maps.h"
#include "coordinator/measure/efficiency_meter.h"
#include "coordinator/planning/strategy_change.h"

namespace gleaner::coordinator {

// The class of the bits of all sums of a job.
struct BitsSummary {
  plan::Bits in_force = plan::Bits::kRankOrder;
  // With --strategy auto: the other class. None: a bandwidth is unknown, or nothing moves.
  std::optional<OtherBits> other;
};

// The bound under the plan in force, for a step as in the last minute; 0: nothing moves, or a bandwidth is unknown.
struct PlanBound {
  double seconds = 0;
  double seconds_without_summers = 0;
};

// All figures are 0 if nothing was reduced.
struct Summary {
  uint32_t workers = 0;
  uint32_t summers = 0;
  uint32_t local_ranks = 1;
  std::string strategy = plan::kSummersStrategy;  // plan::strategy_of() the plan in force
  std::vector<strategy::MappedSpec> mapped;       // schedules of that plan that strategy::map_ranks() changed
  // With --strategy auto: the latest changes of strategies, of all rounds of an elastic job, and the candidates for the
  // sizes of the plan's tensors.
  std::vector<StrategyChange> strategy_changes;
  std::vector<CandidateTimes> candidates;
  BitsSummary bits;
  uint32_t epoch = 0;
  uint64_t tensors = 0;
  uint64_t partitions = 0;
  // The means over the whole job; each step is compared with the bound of the plan in force at that time. If no step
  // began and ended under one plan, these are means over all reports, without an efficiency. whole.steps: the steps of
  // the rank that is furthest.
  Figures whole;
  Figures window;                    // of the last minute: status and metrics show it
  std::vector<EpochFigures> epochs;  // epochs with steps, of all rounds of an elastic job
  PlanBound plan_bound;
  std::optional<control::Packs> packs;  // chosen by rank 0; none: it has chosen none
  bool bandwidths_known = true;         // of all members of the plan in force
  double push_ratio = 1;                // of the plan in force (plan::Fleet)
  bool succeeded = false;
  std::string error;  // why the job failed

  // Returns the figures of the last minute, or of the whole job if no step of that minute counts.
  const Figures& recent() const { return window.steps > 0 ? window : whole; }
};

// Returns a summary with the figures of the plan and of the reports. The caller adds the job's members and its outcome.
Summary summarize(const plan::Plan& plan, const EfficiencyMeter& efficiency, absl::Duration now);

// Returns one line about the packs that rank 0 has chosen, for people.
std::string describe(const control::Packs& packs);

std::string to_json(const Summary& summary);
std::string to_table(const Summary& summary);

}  // namespace gleaner::coordinator
