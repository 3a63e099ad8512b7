#include "coordinator/planning/planner.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/backoff.h"
#include "common/base/status_macros.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"
#include "common/strategy/choice.h"
#include "coordinator/roster/stand_in_bandwidth.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kFirstPause = absl::Seconds(5);
constexpr absl::Duration kLongestPause = absl::Minutes(5);

}  // namespace

bool Planner::chooses_strategies() const { return is_auto(options_.reduction.strategy); }

// Returns the bandwidth of a member's link in bits per second. The sources, in this order: set_bandwidth(), the
// options' list, options.bits_per_second, the member itself. None: no source has it.
std::optional<double> Planner::known_bandwidth_of(uint32_t member) const {
  const bool worker = member < options_.workers;
  const auto& list = worker ? options_.worker_bits_per_second : options_.summer_bits_per_second;
  const uint32_t seat = roster_.seat_of_member(member);
  if (roster_[seat].bits_per_second > 0) return roster_[seat].bits_per_second;
  if (const uint32_t index = roster_.index_of(seat); index < list.size() && list[index] > 0) return list[index];
  if (options_.bits_per_second > 0) return options_.bits_per_second;
  const double own = roster_[seat].identity.bits_per_second;
  return own > 0 ? std::optional(own) : std::nullopt;
}

// Returns the bandwidth that plans assume for a link of unknown bandwidth: the median of the known bandwidths, or
// kAssumedBitsPerSecond if none is known.
double Planner::assumed_bandwidth() const {
  std::vector<double> known;
  for (uint32_t member = 0; member < options_.workers + roster_.summers(); ++member) {
    if (!roster_[roster_.seat_of_member(member)].takes_part()) continue;
    if (const std::optional<double> bandwidth = known_bandwidth_of(member)) known.push_back(*bandwidth);
  }
  return stand_in_bits_per_second(std::move(known));
}

// Returns the members of the plan in force, with empty places for lost summers.
std::vector<plan::Member> Planner::members_left(const plan::Plan& in_force) const {
  std::vector<plan::Member> members = in_force.members;
  for (uint32_t member = in_force.workers; member < members.size(); ++member) {
    if (!roster_.is_part_of(in_force, roster_.seat_of_member(member))) members[member] = {};
  }
  return members;
}

// Returns the members that a plan of `epoch` should have, with their present bandwidths: all but the summers that
// leave.
std::vector<plan::Member> Planner::members_wanted(const plan::Plan& in_force, uint32_t epoch) const {
  std::vector<plan::Member> members(options_.workers + roster_.summers());
  const double assumed = assumed_bandwidth();
  for (uint32_t member = 0; member < members.size(); ++member) {
    const bool is_worker = member < options_.workers;
    const Seat& seat = roster_[roster_.seat_of_member(member)];
    if (!is_worker && (!seat.takes_part() || seat.leaving)) continue;
    const bool in_plan = is_worker && in_force.epoch > 0;
    const uint32_t since = in_plan ? in_force.members[member].since : seat.since;
    const std::optional<double> bandwidth = known_bandwidth_of(member);
    members[member] = {bandwidth.value_or(assumed), seat.identity.address,  since > 0 ? since : epoch,
                       seat.identity.endpoints,     !bandwidth.has_value(), seat.on_standby};
  }
  while (members.size() > std::max<size_t>(options_.workers, in_force.members.size()) && !members.back().is_here()) {
    members.pop_back();
  }
  return members;
}

absl::StatusOr<plan::Plan> Planner::make_first(uint32_t epoch) const {
  plan::Fleet fleet;
  const uint32_t members = options_.workers + roster_.summers();
  const double assumed = assumed_bandwidth();
  for (uint32_t member = 0; member < members; ++member) {
    auto& side = member < options_.workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second;
    side.push_back(known_bandwidth_of(member).value_or(assumed));
  }
  GLN_ASSIGN_OR_RETURN(plan::Plan plan, plan::make_plan(fleet, {}, {options_.partition_bytes}));
  plan.epoch = epoch;
  plan.members = members_wanted(plan::Plan(), epoch);
  plan.local_ranks = options_.local_ranks;
  plan.bits = bits_of(options_.reduction);
  if (const collective::Spec* schedule = schedule_of(options_.reduction.strategy)) plan.schedules = {*schedule};
  return plan;
}

plan::Plan Planner::reassign(const plan::Plan& in_force, std::vector<plan::Member> members, uint32_t epoch,
                             plan::Reassign which) const {
  std::vector<double> shares;
  if (options_.reduction.network != nullptr) {
    plan::Plan with_members = in_force;
    with_members.members = members;
    shares = modelling_.shares_of(with_members);
  }
  return plan::reassign(in_force, std::move(members), epoch, which, std::move(shares));
}

std::vector<double> Planner::shares_with(const plan::Plan& plan, const std::vector<plan::Tensor>& added) const {
  if (options_.reduction.network == nullptr) return {};
  plan::Plan with_tensors = plan;
  with_tensors.tensors.insert(with_tensors.tensors.end(), added.begin(), added.end());
  return modelling_.shares_of(with_tensors);
}

absl::StatusOr<std::optional<Planner::Proposal>> Planner::make_next(const plan::Plan& in_force, uint32_t epoch,
                                                                    bool ending, absl::Duration now) {
  Proposal next{in_force, PlanReason::kNeeded};
  if (!ending && roster_.is_any_summer_lost(in_force)) {
    next.reason = PlanReason::kRecovery;
    next.plan = reassign(in_force, members_left(in_force), epoch, plan::Reassign::kLost);
  } else if (tensors_.empty()) {
    std::vector<plan::Member> wanted = members_wanted(in_force, epoch);
    if (ending || now < next_optional_) return std::nullopt;
    next.reason = PlanReason::kOptional;
    if (is_uneven_ || wanted != in_force.members) {
      next.plan = reassign(in_force, std::move(wanted), epoch, plan::Reassign::kAll);
      was_uneven_ = std::exchange(is_uneven_, false);
    } else if (std::optional<plan::Plan> changed = strategies_.make_change(in_force, epoch, now)) {
      next.plan = *std::move(changed);
    } else if (std::optional<plan::Plan> tuned = masters_.make_change(in_force, epoch, now)) {
      std::vector<plan::Member> members = tuned->members;
      next.plan = reassign(*tuned, std::move(members), epoch, plan::Reassign::kAll);
    } else {
      return std::nullopt;
    }
  }
  if (tensors_.empty()) return next;
  const auto known = modelling_.of(next.plan);
  if (next.reason == PlanReason::kRecovery && (!known.ok() || *known == nullptr)) return next;
  GLN_ASSIGN_OR_RETURN(const auto models, known);
  if (models == nullptr) return std::nullopt;
  std::vector<plan::Tensor> tensors = tensors_;
  if (chooses_strategies()) next.strategies = strategies_.choose(next.plan, tensors, *models);
  if (schedule_of(options_.reduction.strategy) != nullptr) {
    for (plan::Tensor& tensor : tensors) {
      if (tensor.may_have_schedule()) tensor.schedule = MasterTuning::schedule_of_new(next.plan);
    }
  }
  plan::PartitionOptions options{options_.partition_bytes};
  options.schedules = models->cuts_of(next.plan.schedules);
  options.shares = shares_with(next.plan, tensors);
  GLN_ASSIGN_OR_RETURN(next.plan, plan::extend_plan(next.plan, std::move(tensors), options, epoch));
  tensors_in_proposal_ = tensors_.size();
  return next;
}

absl::Status Planner::set_summer_switch(uint32_t summer, uint32_t at) {
  GLN_ASSIGN_OR_RETURN(const bool changes, modelling_.set_summer_switch(summer, at));
  const std::optional<uint32_t> seat = roster_.seat_of_index(Role::kSummer, summer);
  if (changes && seat.has_value() && roster_[*seat].takes_part()) is_uneven_ = true;
  return absl::OkStatus();
}

void Planner::add_tensors(std::vector<plan::Tensor> tensors) {
  tensors_.insert(tensors_.end(), std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end()));
}

void Planner::on_committed(PlanReason reason) {
  tensors_.erase(tensors_.begin(),
                 tensors_.begin() + static_cast<std::ptrdiff_t>(std::exchange(tensors_in_proposal_, 0)));
  if (reason == PlanReason::kRecovery) is_uneven_ = true;
  if (reason != PlanReason::kOptional) return;
  was_uneven_ = false;
  pause_ = absl::ZeroDuration();
}

void Planner::on_withdrawn() {
  tensors_in_proposal_ = 0;
  is_uneven_ = is_uneven_ || std::exchange(was_uneven_, false);
  strategies_.on_withdrawn();
  masters_.on_withdrawn();
}

absl::Duration Planner::back_off(absl::Duration now) {
  pause_ = next_pause(pause_, kFirstPause, kLongestPause);
  next_optional_ = now + pause_;
  return pause_;
}

}  // namespace gleaner::coordinator
