// Job::state(): the state of a job as the operator reports it.
#include "absl/strings/str_cat.h"
#include "common/plan/partitioner.h"
#include "coordinator/service/job.h"

namespace gleaner::coordinator {
namespace {

// Describes the worker or summer whose first seat is `seat` and which has `ranks` seats.
MemberState member_of(const Roster& roster, uint32_t seat, uint32_t ranks) {
  MemberState member;
  const Seat& first = roster[seat];
  member.role = roster.is_summer(seat) ? Role::kSummer : Role::kWorker;
  member.index = roster.index_of(seat);
  member.name = absl::StrCat(member.role == Role::kSummer ? "summer-" : "worker-", member.index);
  member.address = first.identity.address;
  member.endpoints = first.identity.endpoints;
  member.bits_per_second = first.identity.bits_per_second;
  member.acknowledged_epoch = first.known_epoch();
  member.joined = member.left = true;
  for (uint32_t rank = seat; rank < seat + ranks; ++rank) {
    member.joined &= roster[rank].state == Seat::State::kPresent || roster[rank].state == Seat::State::kLeft;
    member.left &= roster[rank].state == Seat::State::kLeft;
    member.acknowledged_epoch = std::min(member.acknowledged_epoch, roster[rank].known_epoch());
  }
  return member;
}

}  // namespace

JobState Job::state() const {
  JobState state;
  const Core& core = rounds_.core();
  const Roster& roster = core.roster();
  const plan::Plan& plan = core.plan();
  const uint32_t local_ranks = options_.options.local_ranks;
  state.phase = rounds_.phase();
  state.epoch = plan.epoch;
  state.proposed_epoch = core.planning().agreement().proposed_epoch();
  state.summary = rounds_.summary();
  state.strategies = plan::strategy_shares(plan);
  state.schedules = plan.schedules;
  state.outcome = rounds_.outcome();
  state.any_rank_joined = rounds_.any_rank_joined();
  state.is_undecided = core.outcome().is_undecided();
  if (state.phase == Phase::kRunning) state.stall = core.steps().deadlocks().stall();
  const std::vector<uint64_t> owned = plan::owned_bytes(plan);
  for (uint32_t seat = 0; seat < roster.size(); seat += roster.is_summer(seat) ? 1 : local_ranks) {
    if (roster[seat].state == Seat::State::kVacant) continue;
    state.members.push_back(member_of(roster, seat, roster.is_summer(seat) ? 1 : local_ranks));
    if (state.phase == Phase::kRunning) state.members.back().slow = core.steps().slow_summers().describe(seat);
    const uint32_t member = roster.member_of(seat);
    if (!roster.is_part_of(plan, seat) || member >= plan.members.size()) continue;
    state.members.back().owned_bytes = owned[member];
    state.members.back().bits_per_second = plan.members[member].bits_per_second;
    state.members.back().bandwidth_assumed = plan.members[member].bandwidth_assumed;
  }
  if (const std::optional<uint32_t> seat = core.outcome().culprit(); seat.has_value()) {
    const bool summer = roster.is_summer(*seat);
    state.culprit = {summer ? Role::kSummer : Role::kWorker, roster.index_of(*seat), summer ? 0 : *seat % local_ranks};
  }
  return state;
}

}  // namespace gleaner::coordinator
