#include "comm-lib/runtime/measured_steps.h"

#include <algorithm>
#include <utility>

namespace gleaner::runtime {

void MeasuredSteps::follow(uint32_t epoch) {
  epochs_.push_back({});
  epochs_.back().measured.epoch = epoch;
  if (epochs_.size() > kEpochsKept) epochs_.pop_front();
}

MeasuredSteps::Epoch* MeasuredSteps::find(uint32_t epoch) {
  const auto found = std::ranges::find_if(epochs_, [&](const Epoch& each) { return each.measured.epoch == epoch; });
  return found == epochs_.end() ? nullptr : &*found;
}

void MeasuredSteps::add(const StepInterval& interval) {
  const uint64_t step_bytes = interval.begun_bytes / interval.steps;
  const bool is_like_the_last = step_bytes == std::exchange(latest_step_bytes_, step_bytes);
  const Pending step{epochs_.empty() ? 0 : epochs_.back().measured.epoch, interval};
  if (is_like_the_last) {
    if (!pending_.empty()) {
      count(pending_.back());
      pending_.pop_back();
      drop_pending();
    }
    return count(step);
  }
  pending_.push_back(step);
  if (pending_.size() < kMostUnlike) return;
  for (const Pending& each : std::exchange(pending_, {})) count(each);
}

void MeasuredSteps::count(const Pending& step) {
  Epoch* const epoch = step.interval.is_countable ? find(step.epoch) : nullptr;
  if (epoch == nullptr) return drop(step);
  epoch->bytes += step.interval.bytes;
  control::Measured& measured = epoch->measured;
  measured.steps += step.interval.steps;
  measured.step_bytes += step.interval.begun_bytes;
  measured.bytes = epoch->bytes > epoch->left_out ? epoch->bytes - epoch->left_out : 0;
  measured.open_bytes = step.interval.open_bytes;
  measured.communication_seconds += absl::ToDoubleSeconds(step.interval.busy);
  counted_step_bytes_ = step.interval.begun_bytes / step.interval.steps;
}

// Requests in flight at the end of a step that does not count may end in one that does.
void MeasuredSteps::drop(const Pending& step) {
  if (Epoch* const epoch = find(step.epoch)) epoch->left_out += step.interval.open_bytes;
}

void MeasuredSteps::drop_pending() {
  for (const Pending& each : std::exchange(pending_, {})) drop(each);
}

void MeasuredSteps::count_rest() {
  if (!figures().empty()) return;
  for (const Pending& each : std::exchange(pending_, {})) count(each);
}

void MeasuredSteps::clear() {
  pending_.clear();
  for (Epoch& each : epochs_) each = {.measured = {.epoch = each.measured.epoch}};
  latest_step_bytes_ = counted_step_bytes_ = 0;
}

std::vector<control::Measured> MeasuredSteps::figures() const {
  std::vector<control::Measured> figures;
  for (const Epoch& each : epochs_) {
    if (each.measured.steps > 0) figures.push_back(each.measured);
  }
  return figures;
}

}  // namespace gleaner::runtime
