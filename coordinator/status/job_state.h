// JobState is the state of a job and its members, as the operator reads it. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/collective/spec.h"
#include "common/plan/schedule_name.h"
#include "coordinator/roster/roster.h"
#include "coordinator/status/phase.h"
#include "coordinator/status/summary.h"

namespace gleaner::coordinator {

// A member as ReductionPlans and users see it.
struct MemberState {
  std::string name;  // worker-0, summer-1
  Role role = Role::kWorker;
  uint32_t index = 0;
  bool joined = false;  // all local ranks of the member have joined, and none is away
  bool left = false;
  std::string address;
  std::vector<std::string> endpoints;  // as in plan::Member
  double bits_per_second = 0;
  bool bandwidth_assumed = false;  // the plan in force only assumes bits_per_second
  uint64_t owned_bytes = 0;
  uint32_t acknowledged_epoch = 0;
  std::string slow;  // says that this summer is slow, with the figures (slow_summers.h); empty: it is not
};

struct JobState {
  using Phase = coordinator::Phase;
  Phase phase = Phase::kGathering;
  uint32_t epoch = 0;                           // of the plan in force; 0: none
  uint32_t proposed_epoch = 0;                  // of the proposed plan; 0: none
  std::vector<MemberState> members;             // workers, then summers
  Summary summary;                              // up to now
  std::vector<plan::StrategyShare> strategies;  // of the plan in force
  std::vector<collective::Spec> schedules;      // of the plan in force
  std::optional<absl::Status> outcome;          // once the job has ended; OK if every worker left cleanly
  struct Culprit {
    Role role = Role::kWorker;
    uint32_t index = 0;
    uint32_t local_rank = 0;
  };
  bool any_rank_joined = false;    // whether any rank has ever joined
  std::optional<Culprit> culprit;  // the member that made the job fail, if one is known
  bool is_undecided = false;       // the job fails, and which member is the cause is still open (outcome.h)
  std::string stall;  // names a rank that has not begun a push_pull that others wait for (stalls.h); empty: none
};

}  // namespace gleaner::coordinator
