#include "common/collective/summary.h"

#include <algorithm>

#include "common/base/status_macros.h"

namespace gleaner::collective {
namespace {

// Chunks that each rank sends and receives.
struct Loads {
  explicit Loads(uint32_t ranks) : sent(ranks), received(ranks) {}
  std::vector<uint64_t> sent, received;
};

// Returns the numbers of a step of the pattern, and adds the loads of all its steps to `all`.
StepRange measure(const StepPattern& pattern, uint32_t ranks, Loads& all) {
  StepRange range;
  Loads loads(ranks);
  for (const Transfer& transfer : pattern.transfers) {
    range.messages += transfer.messages;
    range.largest = std::max<uint64_t>(range.largest, transfer.chunks);
    loads.sent[transfer.from] += transfer.chunks;
    loads.received[transfer.to] += transfer.chunks;
    if (range.who.size() < kShownTransfers) range.who.push_back(transfer);
  }
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    range.most = std::max({range.most, loads.sent[rank], loads.received[rank]});
    all.sent[rank] += loads.sent[rank] * pattern.steps.size();
    all.received[rank] += loads.received[rank] * pattern.steps.size();
  }
  return range;
}

}  // namespace

double slices_per_vector(const Schedule& schedule) {
  uint64_t slices = 0, chunks = 0;
  for (const std::vector<Op>& program : schedule.programs) {
    for (const Op& op : program) {
      if (op.kind != OpKind::kSend) continue;
      ++slices;
      chunks += op.slice.count;
    }
  }
  return slices == 0 ? 1 : static_cast<double>(slices) * schedule.chunks_per_block() / static_cast<double>(chunks);
}

absl::StatusOr<Summary> summarize(const Schedule& schedule) {
  GLN_ASSIGN_OR_RETURN(const std::vector<StepPattern> patterns, step_patterns(schedule));
  Summary summary;
  Loads all(schedule.ranks);
  std::vector<StepRange> of_pattern;
  std::vector<uint32_t> pattern_of(schedule.steps);
  for (uint32_t pattern = 0; pattern < patterns.size(); ++pattern) {
    of_pattern.push_back(measure(patterns[pattern], schedule.ranks, all));
    for (const uint32_t step : patterns[pattern].steps) pattern_of[step] = pattern;
  }
  for (uint32_t step = 0; step < schedule.steps; ++step) {
    const StepRange& range = of_pattern[pattern_of[step]];
    summary.messages += range.messages;
    summary.star_chunks += range.most;
    if (step > 0 && pattern_of[step - 1] == pattern_of[step]) {
      summary.steps.back().last = step;
      continue;
    }
    summary.steps.push_back(range);
    summary.steps.back().first = summary.steps.back().last = step;
  }
  const auto [least_sent, most_sent] = std::minmax_element(all.sent.begin(), all.sent.end());
  const auto [least_received, most_received] = std::minmax_element(all.received.begin(), all.received.end());
  summary.least_sent = *least_sent;
  summary.most_sent = *most_sent;
  summary.least_received = *least_received;
  summary.most_received = *most_received;
  return summary;
}

}  // namespace gleaner::collective
