#include "comm-lib/exchange/strategies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/ordinal.h"

namespace gleaner::exchange {

absl::Status Strategies::prepare(const plan::Plan& plan) {
  forget_prepared();
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    const plan::Tensor& planned = plan.tensors[i];
    if (tensors_[i].keeps_strategy(planned) || most_begun(i) <= planned.schedule_from) continue;
    GLN_RARE("worker: a change of strategy comes too late");
    if (GLN_MUTATION("a change of strategy that comes too late is followed")) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("the plan of epoch ", plan.epoch, " changes the strategy of tensor '", planned.name, "' from its ",
                     ordinal(planned.schedule_from), " push_pull on, but this worker has begun ", most_begun(i),
                     " push_pulls of it; the change must begin with a later one"));
  }
  prepared_epoch_ = plan.epoch;
  for (uint32_t i = 0; i < tensors_.size(); ++i) {
    if (!tensors_[i].keeps_strategy(plan.tensors[i])) tensors_[i].held_from = plan.tensors[i].schedule_from;
  }
  return absl::OkStatus();
}

void Strategies::withdraw(uint32_t epoch) {
  if (GLN_MUTATION("a withdrawn change of strategy goes on holding")) return;
  if (prepared_epoch_ == epoch) forget_prepared();
}

void Strategies::forget_prepared() {
  prepared_epoch_ = 0;
  for (Tensor& tensor : tensors_) tensor.held_from = kNever;
}

void Strategies::apply(const plan::Plan& plan) {
  forget_prepared();
  first_partition_ = plan.first_partition;
  begun_.resize(plan.partitions.size());
  for (uint32_t i = 0; i < plan.tensors.size(); ++i) {
    const Change change{plan.tensors[i].schedule_from, plan.tensors[i].schedule};
    if (i == tensors_.size()) {
      tensors_.push_back({{change}});
      continue;
    }
    std::vector<Change>& changes = tensors_[i].changes;
    if (tensors_[i].keeps_strategy(plan.tensors[i])) continue;
    changes.push_back(change);
    // The first change is needed only until the second one has begun on every partition.
    while (changes.size() > 1 && changes[1].from <= least_begun(i)) changes.erase(changes.begin());
  }
}

std::optional<Strategies::Schedule> Strategies::find(uint32_t tensor, uint32_t partition) const {
  const Tensor& state = tensors_[tensor];
  const std::span<const uint64_t> begun = begun_of(tensor);
  const uint64_t number = partition < begun.size() ? begun[partition] : 0;
  const bool waits = !GLN_MUTATION("push_pulls do not wait for a change of strategy");
  if (number >= state.held_from && waits) return std::nullopt;
  auto change = state.changes.rbegin();
  const bool is_early = GLN_MUTATION("a strategy changes too early");
  while (change->from > number && change + 1 != state.changes.rend() && !is_early) ++change;
  return std::optional<Schedule>(std::in_place, change->schedule);
}

void Strategies::on_begun(uint32_t tensor, uint32_t first, uint32_t count) {
  const uint32_t begin = first_partition_[tensor] + first;
  const uint32_t end = begin + std::min(count, first_partition_[tensor + 1] - begin);
  for (uint32_t i = begin; i < end; ++i) ++begun_[i];
}

std::span<const uint64_t> Strategies::begun_of(uint32_t tensor) const {
  const uint32_t first = first_partition_[tensor];
  return std::span(begun_).subspan(first, first_partition_[tensor + 1] - first);
}

uint64_t Strategies::most_begun(uint32_t tensor) const {
  const std::span<const uint64_t> begun = begun_of(tensor);
  return begun.empty() ? 0 : *std::ranges::max_element(begun);
}

uint64_t Strategies::least_begun(uint32_t tensor) const {
  const std::span<const uint64_t> begun = begun_of(tensor);
  return begun.empty() ? kNever : *std::ranges::min_element(begun);
}

}  // namespace gleaner::exchange
