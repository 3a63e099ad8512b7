#include "common/collective/step_patterns.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/messages.h"

namespace gleaner::collective {
namespace {

// Returns the transfers of messages of one step.
std::vector<Transfer> transfers_of(uint32_t partial_width, std::vector<const Message*> messages) {
  std::sort(messages.begin(), messages.end(),
            [](const Message* a, const Message* b) { return a->from != b->from ? a->from < b->from : a->to < b->to; });
  std::vector<Transfer> transfers;
  for (const Message* message : messages) {
    if (transfers.empty() || transfers.back().from != message->from || transfers.back().to != message->to) {
      transfers.push_back({message->from, message->to, 0, 0});
    }
    transfers.back().chunks += message->slice.count * (message->take == Take::kReduce ? partial_width : 1);
    ++transfers.back().messages;
  }
  return transfers;
}

uint64_t hash_of(const std::vector<Transfer>& transfers) {
  uint64_t hash = transfers.size();
  for (const Transfer& transfer : transfers) {
    for (const uint32_t value : {transfer.from, transfer.to, transfer.chunks, transfer.messages}) {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
  }
  return hash;
}

// Returns OK if each rank sends first in each step, so that the step's messages do not depend on each other.
absl::Status check_order(const Schedule& schedule) {
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    const Op* last = nullptr;
    for (const Op& op : schedule.programs[rank]) {
      if (op.kind == OpKind::kSend && last != nullptr && last->kind == OpKind::kReceive && last->step == op.step) {
        return absl::InvalidArgumentError(
            absl::StrCat("rank ", rank, " receives before it sends in step ", op.step, "; give its sends an own step"));
      }
      last = &op;
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<StepPattern>> step_patterns(const Schedule& schedule, uint32_t partial_width) {
  GLN_ASSIGN_OR_RETURN(const Messages messages, Messages::make(schedule));
  GLN_RETURN_IF_ERROR(check_order(schedule));
  std::vector<std::vector<const Message*>> by_step(schedule.steps);
  for (const Message& message : messages.all()) by_step[message.step].push_back(&message);
  std::vector<StepPattern> patterns;
  absl::flat_hash_map<uint64_t, std::vector<size_t>> with_hash;
  for (uint32_t step = 0; step < schedule.steps; ++step) {
    std::vector<Transfer> transfers = transfers_of(partial_width, std::move(by_step[step]));
    std::vector<size_t>& candidates = with_hash[hash_of(transfers)];
    const auto equal = std::find_if(candidates.begin(), candidates.end(),
                                    [&](size_t pattern) { return patterns[pattern].transfers == transfers; });
    if (equal != candidates.end()) {
      patterns[*equal].steps.push_back(step);
      continue;
    }
    candidates.push_back(patterns.size());
    patterns.push_back({std::move(transfers), {step}});
  }
  return patterns;
}

}  // namespace gleaner::collective
