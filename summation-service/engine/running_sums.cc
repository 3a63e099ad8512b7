#include "summation-service/engine/running_sums.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/block_size.h"
#include "common/base/faults.h"
#include "common/plan/successor.h"
#include "summation-service/engine/checks.h"
#include "summation-service/engine/groups.h"

namespace gleaner::engine {

RunningSums::RunningSums(const Identity& identity, const kernels::Kernels* kernels, BufferPool* pool,
                         MemoryBudget* memory, const Releases* releases)
    : identity_(identity), kernels_(kernels), pool_(pool), memory_(memory), releases_(releases) {}

void RunningSums::follow(std::shared_ptr<const plan::Plan> plan) {
  const uint32_t before = plan_ == nullptr ? 0 : plan_->epoch;
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    if (has(i) && plan::has_moved(plan->partitions[i], before)) forget(i);
  }
  plan_ = std::move(plan);
  entries_.resize(plan_->partitions.size());
  for (uint32_t i = 0; i < entries_.size(); ++i) {
    const plan::Partition& partition = plan_->partitions[i];
    if (partition.owner != identity_.self || !tensor_of(i).accumulates || has(i)) continue;
    entries_[i] = std::make_unique<Entry>(Entry{RunningSum(plan_->workers), nullptr});
    // A first owner needs no takeover: the sum is zero.
    if (partition.since == tensor_of(i).since) continue;
    entries_[i]->takeover = std::make_unique<AccumulationTakeover>(plan_->workers);
  }
}

void RunningSums::forget(uint32_t index) {
  const std::unique_ptr<Entry> entry = std::move(entries_[index]);
  counters_.accumulated_bytes -= block_size(entry->sum.answer().size());
  if (entry->takeover == nullptr) return;
  GLN_RARE("engine: a running sum moves away during its takeover");
  for (uint32_t worker = 0; worker < plan_->workers; ++worker) {
    memory_->release(kAllWorkers, block_size(entry->takeover->waiting(worker).values.size()));
  }
}

absl::Status RunningSums::push(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const uint32_t index = index_of(key_of(header));
  const Entry& entry = *entries_[index];
  if (entry.takeover != nullptr) {
    keep_until_taken_over(worker, header, std::move(payload), actions);
    return absl::OkStatus();
  }
  if (header.step > entry.sum.count(worker)) {
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(worker), " is at ",
                                                      describe(*plan_, key_of(header)), ", but the sum has only ",
                                                      entry.sum.count(worker), " of its contributions"));
  }
  contribute(worker, index, header.step, payload, actions);
  return absl::OkStatus();
}

void RunningSums::keep_until_taken_over(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const wire::PartitionKey key = key_of(header);
  AccumulationTakeover& takeover = *entries_[index_of(key)]->takeover;
  if (!takeover.waiting(worker).values.empty()) {
    ++counters_.duplicates;
    return;
  }
  const uint64_t needed = block_size(payload.size());
  if (!memory_->has_room(kAllWorkers, needed)) {
    ++counters_.deferred;
    actions.sends.push_back({worker, make_header(identity_, plan_->epoch, wire::FrameType::kDefer, key), {}});
    return;
  }
  GLN_RARE("engine: a contribution waits until a running sum is taken over");
  memory_->reserve(kAllWorkers, needed);
  takeover.keep(worker, std::move(payload), key.step);
}

void RunningSums::contribute(uint32_t worker, uint32_t index, uint64_t step, const Buffer& contribution,
                             Actions& actions) {
  RunningSum& sum = entries_[index]->sum;
  const bool is_repeated = step < sum.count(worker);
  if (is_repeated) {
    GLN_RARE("engine: a contribution to a running sum comes twice");
    ++counters_.duplicates;
  }
  // The worker has this answer, since it has pushed the next step.
  if (step + 1 < sum.count(worker)) return;
  if (!is_repeated || GLN_MUTATION("a contribution to a running sum counts twice")) {
    add(worker, index, contribution);
    actions.has_contributed = actions.has_summed = true;
  } else {
    ++counters_.resent;
    sum.set_unanswered(worker, true);
  }
  send_answers(index, actions);
}

void RunningSums::add(uint32_t worker, uint32_t index, const Buffer& contribution) {
  RunningSum& sum = entries_[index]->sum;
  const uint64_t before = block_size(sum.answer().size());
  sum.add(worker, contribution, tensor_of(index).type, *kernels_, *pool_);
  counters_.accumulated_bytes += block_size(sum.answer().size()) - before;
  ++counters_.contributions;
  ++counters_.sums;
  counters_.summed_bytes += contribution.size();
}

// Sends answers to the unanswered workers that are not too far ahead of the others.
void RunningSums::send_answers(uint32_t index, Actions& actions) {
  RunningSum& sum = entries_[index]->sum;
  const uint64_t staleness = tensor_of(index).staleness;
  const uint64_t least = sum.least_count();
  for (uint32_t worker = 0; worker < plan_->workers; ++worker) {
    if (!sum.is_unanswered(worker)) continue;
    const bool is_too_far = staleness != plan::kUnbounded && sum.count(worker) > least + staleness + 1;
    if (is_too_far) GLN_RARE("engine: an answer waits for workers that are behind");
    if (is_too_far && !GLN_MUTATION("answers do not wait for workers that are behind")) continue;
    sum.set_unanswered(worker, false);
    send_answer(worker, index, actions);
  }
}

void RunningSums::send_answer(uint32_t worker, uint32_t index, Actions& actions) const {
  const RunningSum& sum = entries_[index]->sum;
  wire::Header header =
      make_header(identity_, plan_->epoch, wire::FrameType::kResult, key_of(*plan_, index, sum.count(worker) - 1));
  header.data_type = tensor_of(index).type;
  header.op = ReduceOp::kAccumulate;
  header.confirmed = releases_->first_unreleased();
  header.payload_bytes = static_cast<uint32_t>(sum.answer().size());
  actions.sends.push_back({worker, header, sum.answer()});
}

void RunningSums::acknowledge(uint32_t worker, const wire::PartitionKey& key, Actions& actions) {
  const uint32_t index = index_of(key);
  AccumulationTakeover* const takeover = entries_[index]->takeover.get();
  if (takeover == nullptr) return;
  if (takeover->has_heard(worker)) {
    // The worker repeats its version because it has connected again, so the kFetch or its answer may be lost.
    if (takeover->is_fetching() && takeover->source() == worker) {
      GLN_RARE("engine: a running sum is requested again");
      fetch(index, actions);
    }
    return;
  }
  if (!takeover->hear(worker, key.step)) return;
  ++counters_.takeovers;
  if (takeover->version() == 0) return end_takeover(index, actions);
  takeover->set_fetching();
  fetch(index, actions);
}

// Asks a worker that has the highest version for it.
void RunningSums::fetch(uint32_t index, Actions& actions) const {
  const AccumulationTakeover& takeover = *entries_[index]->takeover;
  const wire::PartitionKey key = key_of(*plan_, index, takeover.version());
  actions.sends.push_back({takeover.source(), make_header(identity_, plan_->epoch, wire::FrameType::kFetch, key), {}});
}

absl::Status RunningSums::hand(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const uint32_t index = index_of(key_of(header));
  Entry& entry = *entries_[index];
  const AccumulationTakeover* const takeover = entry.takeover.get();
  const bool is_awaited = takeover != nullptr && takeover->is_fetching() && takeover->version() == header.step;
  if (!is_awaited) {
    GLN_RARE("engine: a running sum is handed on twice");
    ++counters_.duplicates;
    return absl::OkStatus();
  }
  RunningSum sum(plan_->workers, std::move(payload));
  if (sum.version() != header.step) {
    return absl::InvalidArgumentError(absl::StrCat(plan_->member_name(worker), " handed on version ", sum.version(),
                                                   " of ", describe(*plan_, key_of(header)), "; expected ",
                                                   header.step));
  }
  ++counters_.handed;
  entry.sum = std::move(sum);
  counters_.accumulated_bytes += block_size(entry.sum.answer().size());
  end_takeover(index, actions);
  return absl::OkStatus();
}

void RunningSums::end_takeover(uint32_t index, Actions& actions) {
  const std::unique_ptr<AccumulationTakeover> takeover = std::move(entries_[index]->takeover);
  for (uint32_t worker = 0; worker < plan_->workers; ++worker) {
    const AccumulationTakeover::Contribution& waiting = takeover->waiting(worker);
    memory_->release(kAllWorkers, block_size(waiting.values.size()));
    // A worker can't be at a later step than its count in the sum that was handed on. A push of such a step is dropped;
    // when the worker repeats the push, push() returns an error.
    if (waiting.values.empty() || waiting.step > entries_[index]->sum.count(worker)) continue;
    contribute(worker, index, waiting.step, waiting.values, actions);
  }
}

}  // namespace gleaner::engine
