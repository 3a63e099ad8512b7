#include "summation-service/engine/accumulate.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "summation-service/engine/checks.h"
#include "summation-service/engine/core.h"

namespace gleaner::engine {

void Engine::Core::begin_accumulation(uint32_t index, bool inherits) {
  partitions_[index].accumulation = std::make_unique<Accumulation>(plan_->workers);
  if (inherits) partitions_[index].accumulation->inheritance = std::make_unique<Inheritance>(plan_->workers);
}

void Engine::Core::forget_accumulation(uint32_t index) {
  const Accumulation& state = *partitions_[index].accumulation;
  counters_.accumulated_bytes -= block_size(state.answer.size());
  if (state.inheritance == nullptr) return;
  GLN_RARE("engine: an accumulation is taken away before it was inherited");
  for (const Inheritance::Pushed& pushed : state.inheritance->pushed) {
    counters_.memory_bytes -= block_size(pushed.contribution.size());
  }
}

// --- contributions

absl::Status Engine::Core::accumulate(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const uint32_t index = index_of(key_of(header));
  const Accumulation& state = *partitions_[index].accumulation;
  if (state.inheritance != nullptr) {
    keep_until_inherited(worker, header, std::move(payload), actions);
    return absl::OkStatus();
  }
  if (header.step > state.counts[worker]) {
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(worker), " is at ",
                                                      describe(*plan_, key_of(header)), ", but only ",
                                                      state.counts[worker], " of its contributions are in"));
  }
  contribute(worker, index, header.step, payload, actions);
  return absl::OkStatus();
}

void Engine::Core::keep_until_inherited(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const wire::PartitionKey key = key_of(header);
  Inheritance::Pushed& pushed = partitions_[index_of(key)].accumulation->inheritance->pushed[worker];
  if (!pushed.contribution.empty()) {
    ++counters_.duplicates;
    return;
  }
  const uint64_t needed = block_size(payload.size());
  if (options_.memory_cap_bytes != 0 && counters_.memory_bytes + needed > options_.memory_cap_bytes) {
    ++counters_.deferred;
    actions.push_back({worker, header_of(wire::FrameType::kDefer, key), {}});
    return;
  }
  GLN_RARE("engine: a contribution waits for what is inherited");
  counters_.memory_bytes += needed;
  pushed = {std::move(payload), key.step};
}

void Engine::Core::contribute(uint32_t worker, uint32_t index, uint64_t step, const Buffer& contribution,
                              Actions& actions) {
  Accumulation& state = *partitions_[index].accumulation;
  const bool repeated = step < state.counts[worker];
  if (repeated) {
    GLN_RARE("engine: a contribution to a running sum comes twice");
    ++counters_.duplicates;
  }
  if (step + 1 < state.counts[worker]) return;  // it has its answer: it has pushed the next one since
  if (!repeated || GLN_MUTATION("a contribution to a running sum counts twice")) {
    add(worker, index, contribution);
  } else {
    ++counters_.resent;
  }
  state.due[worker] = 1;
  answer_due(index, actions);
}

void Engine::Core::add(uint32_t worker, uint32_t index, const Buffer& contribution) {
  Accumulation& state = *partitions_[index].accumulation;
  const plan::Partition& partition = plan_->partitions[index];
  const DataType type = plan_->tensors[partition.tensor].type;
  Buffer next = pool_->take(plan_->answer_bytes(partition));
  const std::byte* const both[] = {state.answer.bytes().data(), contribution.bytes().data()};
  const size_t first = state.answer.empty() ? 1 : 0;
  kernels_->sum(type, std::span(both).subspan(first), next.bytes().data(), partition.bytes / size_of(type), 1);
  ++state.counts[worker];
  ++state.version;
  std::memcpy(next.bytes().data() + partition.bytes, state.counts.data(), state.counts.size() * sizeof(uint64_t));
  counters_.accumulated_bytes += block_size(next.size()) - block_size(state.answer.size());
  state.answer = std::move(next);
  ++counters_.contributions;
  ++counters_.sums;
  counters_.summed_bytes += partition.bytes;
}

// --- answers

void Engine::Core::answer_due(uint32_t index, Actions& actions) {
  Accumulation& state = *partitions_[index].accumulation;
  const uint64_t staleness = plan_->tensors[plan_->partitions[index].tensor].staleness;
  const uint64_t least = *std::ranges::min_element(state.counts);
  for (uint32_t worker = 0; worker < plan_->workers; ++worker) {
    if (state.due[worker] == 0) continue;
    const bool too_far = staleness != plan::kUnbounded && state.counts[worker] > least + staleness + 1;
    if (too_far) GLN_RARE("engine: an answer waits for workers that are behind");
    if (too_far && !GLN_MUTATION("answers do not wait for workers that are behind")) continue;
    state.due[worker] = 0;
    answer(worker, index, actions);
  }
}

void Engine::Core::answer(uint32_t worker, uint32_t index, Actions& actions) {
  const Accumulation& state = *partitions_[index].accumulation;
  wire::Header header = header_of(wire::FrameType::kResult, key_of_step(index, state.counts[worker] - 1));
  header.data_type = plan_->tensors[header.tensor].type;
  header.op = ReduceOp::kAccumulate;
  header.released = releases_.first_unreleased();
  header.payload_bytes = static_cast<uint32_t>(state.answer.size());
  actions.push_back({worker, header, state.answer});
}

// --- what an earlier owner has accumulated

void Engine::Core::hear_version(uint32_t worker, uint32_t index, uint64_t version, Actions& actions) {
  const Accumulation& state = *partitions_[index].accumulation;
  if (state.inheritance == nullptr) return;
  Inheritance& inheritance = *state.inheritance;
  if (inheritance.heard[worker] != 0) {
    // It has connected again: what it was asked for may be lost.
    if (inheritance.asked && inheritance.giver == worker) {
      GLN_RARE("engine: a running sum is asked for again");
      fetch_version(index, actions);
    }
    return;
  }
  inheritance.heard[worker] = 1;
  const bool any = GLN_MUTATION("a running sum is inherited from anybody");
  if (any || inheritance.giver == Inheritance::kNobody || version > inheritance.version) {
    inheritance.version = version;
    inheritance.giver = worker;
  }
  if (--inheritance.missing > 0) return;
  ++counters_.takeovers;
  if (inheritance.version == 0) return end_inheritance(index, actions);
  inheritance.asked = true;
  fetch_version(index, actions);
}

void Engine::Core::fetch_version(uint32_t index, Actions& actions) {
  const Inheritance& inheritance = *partitions_[index].accumulation->inheritance;
  const wire::PartitionKey key = key_of_step(index, inheritance.version);
  actions.push_back({inheritance.giver, header_of(wire::FrameType::kFetch, key), {}});
}

absl::Status Engine::Core::inherit(uint32_t worker, const wire::Header& header, Buffer payload, Actions& actions) {
  const uint32_t index = index_of(key_of(header));
  Accumulation& state = *partitions_[index].accumulation;
  const bool awaited =
      state.inheritance != nullptr && state.inheritance->asked && state.inheritance->version == header.step;
  if (!awaited) {
    GLN_RARE("engine: a running sum is handed on twice");
    ++counters_.duplicates;
    return absl::OkStatus();
  }
  std::vector<uint64_t> counts(plan_->workers);
  std::memcpy(counts.data(), payload.bytes().data() + bytes_of(index), counts.size() * sizeof(uint64_t));
  const uint64_t version = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (version != header.step) {
    return absl::InvalidArgumentError(absl::StrCat(plan_->member_name(worker), " handed on version ", version, " of ",
                                                   describe(*plan_, key_of(header)), ", expected ", header.step));
  }
  ++counters_.handed;
  state.counts = std::move(counts);
  state.version = version;
  counters_.accumulated_bytes += block_size(payload.size());
  state.answer = std::move(payload);
  end_inheritance(index, actions);
  return absl::OkStatus();
}

void Engine::Core::end_inheritance(uint32_t index, Actions& actions) {
  Accumulation& state = *partitions_[index].accumulation;
  const std::unique_ptr<Inheritance> inheritance = std::move(state.inheritance);
  for (uint32_t worker = 0; worker < plan_->workers; ++worker) {
    const Inheritance::Pushed& pushed = inheritance->pushed[worker];
    counters_.memory_bytes -= block_size(pushed.contribution.size());
    // A worker can't be further than what is answered; one that says so is told when it pushes again.
    if (pushed.contribution.empty() || pushed.step > state.counts[worker]) continue;
    contribute(worker, index, pushed.step, pushed.contribution, actions);
  }
}

}  // namespace gleaner::engine
