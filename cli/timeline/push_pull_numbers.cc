#include "cli/timeline/push_pull_numbers.h"

#include <iterator>

namespace gleaner::cli {
namespace {

using trace::Event;
using trace::Kind;

bool is_of_request(Kind kind) {
  return kind == Kind::kRequested || kind == Kind::kReady || kind == Kind::kDone || trace::is_of_gpu(kind);
}

}  // namespace

PushPullNumbers::PushPullNumbers(const JobTrace& trace) {
  for (const RankTrace& rank : trace.ranks) {
    if (rank.member < trace.plan.workers) read(rank.recording);
  }
}

void PushPullNumbers::read(const trace::Recording& recording) {
  std::map<uint32_t, uint64_t> in_flight;  // by tensor: the number of the push_pull
  for (const Event& event : recording.events) {
    if (event.kind == Kind::kReady) in_flight[event.tensor] = event.step;
    // Other events of partitions at a worker may be about another step: an early slice, or a repeated result.
    if (event.kind != Kind::kPushed && event.kind != Kind::kBegun) continue;
    const auto ready = in_flight.find(event.tensor);
    if (ready != in_flight.end()) numbers_[strategy_of(event)].emplace(event.step, ready->second);
  }
}

uint64_t PushPullNumbers::find(const Event& event) const {
  if (is_of_request(event.kind)) return event.step;
  const auto strategy = numbers_.find(strategy_of(event));
  if (strategy == numbers_.end()) return event.step;
  const std::map<uint64_t, uint64_t>& numbers = strategy->second;
  auto nearest = numbers.lower_bound(event.step);
  if (nearest == numbers.end()) nearest = std::prev(nearest);
  const auto [step, number] = *nearest;  // a number is never below its step
  return number - step + event.step;
}

}  // namespace gleaner::cli
