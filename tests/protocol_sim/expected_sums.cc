#include "tests/protocol_sim/expected_sums.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/collective/algorithms.h"
#include "common/collective/oracle.h"
#include "common/plan/schedule_name.h"
#include "tests/protocol_sim/oracle.h"

namespace gleaner::sim {
namespace {

using Schedule = std::optional<collective::Spec>;

}  // namespace

void ExpectedSums::follow(const plan::Plan& plan) {
  if (plan.epoch <= epoch_) return;
  epoch_ = plan.epoch;
  changes_.resize(plan.tensors.size());
  for (size_t i = 0; i < plan.tensors.size(); ++i) {
    const plan::Tensor& tensor = plan.tensors[i];
    if (!changes_[i].empty() && changes_[i].back().from == tensor.schedule_from) continue;
    const Schedule schedule = tensor.schedule.has_value() ? Schedule(plan.schedules[*tensor.schedule]) : std::nullopt;
    changes_[i].push_back({tensor.schedule_from, schedule});
  }
}

const ExpectedSums::Schedule& ExpectedSums::schedule_of(uint32_t planned, uint64_t step) const {
  const std::vector<Change>& changes = changes_[planned];
  return std::find_if(changes.rbegin(), std::prev(changes.rend()),
                      [&](const Change& each) { return each.from <= step; })
      ->schedule;
}

absl::StatusOr<const std::vector<std::byte>*> ExpectedSums::of(const plan::Plan& plan, uint32_t planned,
                                                               uint32_t tensor, uint64_t step) {
  const Schedule& schedule = schedule_of(planned, step);
  auto [entry, is_new] = sums_.try_emplace({tensor, step});
  Sum& sum = entry->second;
  if (!is_new) {
    // Workers do not wait for each other in a push_pull of an empty tensor. So a worker may have begun any number of
    // them by the old schedule before it gets the plan with the new one. Their sums are empty by both.
    if (sum.schedule == schedule || sum.bytes.empty()) return &sum.bytes;
    return absl::FailedPreconditionError(absl::StrCat("tensor ", tensor, " step ", step, " is summed by ",
                                                      plan::name_of(schedule), ", and by another worker by ",
                                                      plan::name_of(sum.schedule)));
  }
  const coordinator::Options& job = scenario_->job;
  const plan::Tensor& what = scenario_->tensors[tensor];
  std::vector<std::vector<std::byte>> contributions;
  for (uint32_t worker = 0; worker < job.workers; ++worker) {
    if (!what.has(worker)) continue;
    contributions.push_back(contribution(scenario_->seed, what, tensor, step, worker));
  }
  const bool is_average = scenario_->op_of(tensor, step) == ReduceOp::kAverage;
  const auto ranks = static_cast<uint32_t>(contributions.size()) * job.local_ranks;
  const uint32_t divisor = is_average ? ranks : 1;
  // In a job of class RankOrder the strategy of a tensor must not matter.
  const bool in_rank_order = plan::bits_of(schedule) == plan::Bits::kRankOrder ||
                             coordinator::bits_of(job.reduction) == plan::Bits::kRankOrder;
  sum.bytes = in_rank_order ? reduce(what.type, contributions, divisor)
                            : sum_by_schedule(plan, planned, *schedule, contributions, divisor);
  sum.schedule = schedule;
  return &sum.bytes;
}

// Executes the schedule for each partition. All ranks have the same result.
std::vector<std::byte> ExpectedSums::sum_by_schedule(const plan::Plan& plan, uint32_t planned,
                                                     const collective::Spec& spec,
                                                     const std::vector<std::vector<std::byte>>& contributions,
                                                     uint32_t divisor) const {
  const plan::Tensor& tensor = plan.tensors[planned];
  const auto schedule = collective::make_schedule(spec, plan.workers);
  if (!schedule.ok()) return {};
  std::vector<std::byte> sum;
  for (const plan::Partition& partition : plan.partitions_of(planned)) {
    std::vector<std::vector<std::byte>> inputs(plan.workers);
    for (uint32_t worker = 0; worker < plan.workers; ++worker) {
      const auto begin = contributions[worker].begin() + static_cast<ptrdiff_t>(partition.offset);
      inputs[spec.rank_of.empty() ? worker : spec.rank_of[worker]] = {begin, begin + partition.bytes};
    }
    const auto results =
        collective::execute_all_reduce(*schedule, {tensor.type, tensor.type, divisor}, std::move(inputs));
    if (!results.ok()) return {};
    sum.insert(sum.end(), results->front().begin(), results->front().end());
  }
  return sum;
}

}  // namespace gleaner::sim
