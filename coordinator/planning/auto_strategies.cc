#include "coordinator/planning/auto_strategies.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/choice.h"
#include "common/strategy/step.h"
#include "coordinator/planning/other_bits.h"
#include "coordinator/planning/tensor_groups.h"

namespace gleaner::coordinator {
namespace {

using strategy::Candidate;
using strategy::Models;

constexpr size_t kMostSizes = 32;  // in candidate_times(): the largest ones

// Adds a name to those of strategies, in the order of their first tensors.
void add_name(const Candidate& candidate, std::vector<std::string>& names) {
  std::string name = name_of(candidate);
  if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
}

// Returns the candidates for plans of this class, with summers first. In class RankOrder no choice changes a bit.
std::vector<Candidate> within(const Models& models, plan::Bits bits) {
  if (GLN_MUTATION("auto leaves the class of bits")) return models.candidates;
  return candidates_of(models.candidates, bits);
}

// Fills in which tensors change their strategies, from what to what.
void describe_tensors(const plan::Plan& plan, const TensorGroups& grouped, const std::vector<size_t>& strategies,
                      std::span<const Candidate> candidates, StrategyChange& change) {
  std::vector<std::string> from, to;
  for (size_t id = 0; id < plan.tensors.size(); ++id) {
    const size_t before = grouped.groups[grouped.of_tensor[id]].strategy;
    if (strategies[id] == before) continue;
    ++change.tensors;
    change.bytes += plan.tensors[id].bytes();
    add_name(candidates[before], from);
    add_name(candidates[strategies[id]], to);
  }
  change.from = absl::StrJoin(from, ", ");
  change.to = absl::StrJoin(to, ", ");
}

}  // namespace

std::string AutoStrategies::choose(plan::Plan& plan, std::vector<plan::Tensor>& tensors, const Models& models) const {
  return strategy::choose(plan, tensors, correction_.corrected(within(models, plan.bits)), models.fleet);
}

absl::Status AutoStrategies::on_measured(const plan::Plan& in_force, const StepTime& step, absl::Duration now) {
  if (step.epoch != in_force.epoch || in_force.workers == 1) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(const auto models, modelling_.of(in_force));
  if (models == nullptr) return absl::OkStatus();  // the steps that follow are measured, too
  const std::vector<Candidate> candidates = within(*models, in_force.bits);
  TensorGroups grouped = group_tensors(in_force, candidates);
  scale_to(step.bytes, grouped.groups);
  const auto change = correction_.on_measured(candidates, grouped.groups, step.seconds, now);
  wish_.reset();
  if (!change.has_value()) return absl::OkStatus();
  Wish wish{in_force.epoch, candidates, {}, {}};
  for (const size_t group : grouped.of_tensor) wish.strategies.push_back(change->strategies[group]);
  describe_tensors(in_force, grouped, wish.strategies, candidates, wish.change);
  wish.change.seconds_before = change->seconds_before;
  wish.change.seconds_after = change->seconds_after;
  const double modelled = strategy::step_seconds(candidates, grouped.groups, strategy::in_force(grouped.groups));
  wish.change.why =
      absl::StrCat("a step takes ", format_seconds(step.seconds), ", where the models say ", format_seconds(modelled),
                   "; by the corrected models it then takes ", format_seconds(change->seconds_after), " instead of ",
                   format_seconds(change->seconds_before));
  wish_ = std::move(wish);
  return absl::OkStatus();
}

bool AutoStrategies::ask_for_counts(const plan::Plan& in_force, absl::Duration now) {
  return wish_.has_value() && wish_->epoch == in_force.epoch && counts_.ask(in_force.epoch, now);
}

void AutoStrategies::on_counts(uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now) {
  counts_.on_counts(epoch, std::move(counts), now);
}

std::optional<plan::Plan> AutoStrategies::make_change(const plan::Plan& in_force, uint32_t epoch, absl::Duration now) {
  const size_t tensors = in_force.tensors.size();
  if (!wish_.has_value() || wish_->epoch != in_force.epoch || !counts_.are_known(in_force.epoch, tensors, now)) {
    return std::nullopt;
  }
  plan::Plan next = in_force;
  for (uint32_t id = 0; id < tensors; ++id) {
    plan::Tensor& tensor = next.tensors[id];
    const Candidate& wanted = wish_->candidates[wish_->strategies[id]];
    const std::optional<uint32_t> schedule = strategy::index_of(wanted.schedule, next);
    const bool is_full = !schedule.has_value() && !wanted.is_by_summers();
    if (!tensor.may_have_schedule() || schedule == tensor.schedule || is_full) continue;
    tensor.schedule = schedule;
    tensor.schedule_from = std::max(counts_.after_next_plan(id, now), tensor.schedule_from + 1);
  }
  counts_.reset();
  proposed_ = wish_->change;
  proposed_->epoch = epoch;
  // Owners sum the bytes of other tensors, so the shares of the stream are dealt anew.
  std::vector<plan::Member> members = next.members;
  return plan::reassign(next, std::move(members), epoch, plan::Reassign::kAll, modelling_.shares_of(next));
}

std::optional<StrategyChange> AutoStrategies::on_plan(const plan::Plan& plan, absl::Duration now) {
  std::optional<StrategyChange> change = std::exchange(proposed_, std::nullopt);
  if (change.has_value() && change->epoch != plan.epoch) change.reset();
  correction_.on_plan(change.has_value(), now);
  wish_.reset();
  counts_.reset();
  return change;
}

std::vector<CandidateTimes> AutoStrategies::candidate_times(const plan::Plan& in_force) const {
  const Models* const models = modelling_.present(in_force);
  if (models == nullptr || models->candidates.empty()) return {};
  const std::vector<Candidate>& candidates = models->candidates;
  const std::vector<Candidate> corrected = correction_.corrected(candidates);
  std::vector<strategy::TensorGroup> groups = group_tensors(in_force, candidates).groups;
  std::ranges::stable_sort(groups, std::ranges::greater(), &strategy::TensorGroup::bytes);
  if (groups.size() > kMostSizes) groups.resize(kMostSizes);
  std::vector<CandidateTimes> sizes;
  for (const strategy::TensorGroup& group : groups) {
    if (group.is_fixed) continue;
    CandidateTimes size{static_cast<uint64_t>(group.bytes),
                        static_cast<uint64_t>(group.per_step),
                        name_of(candidates[group.strategy]),
                        {}};
    for (size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& each = candidates[i];
      size.candidates.push_back({name_of(each), each.model_of(group.types).seconds(group.bytes, group.partition_bytes),
                                 correction_.factor(each), correction_.is_measured(each),
                                 corrected[i].model_of(group.types).seconds(group.bytes, group.partition_bytes),
                                 plan::bits_of(each.schedule)});
    }
    sizes.push_back(std::move(size));
  }
  return sizes;
}

std::optional<OtherBits> AutoStrategies::other_bits(const plan::Plan& in_force) const {
  const Models* const models = modelling_.present(in_force);
  if (models == nullptr || models->candidates.empty()) return std::nullopt;
  return compare_bits(in_force, *models);
}

}  // namespace gleaner::coordinator
