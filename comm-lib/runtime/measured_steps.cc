#include "comm-lib/runtime/measured_steps.h"

#include <algorithm>
#include <utility>

namespace gleaner::runtime {
namespace {

MeasuredSteps::StepBytes mean(uint64_t steps, uint64_t bytes, int64_t saved) {
  return {bytes / steps, saved / static_cast<int64_t>(steps)};
}

}  // namespace

void MeasuredSteps::follow(uint32_t epoch) {
  epochs_.push_back({});
  epochs_.back().measured.epoch = epoch;
  if (epochs_.size() > kEpochsKept) epochs_.pop_front();
}

MeasuredSteps::Epoch* MeasuredSteps::find(uint32_t epoch) {
  const auto found = std::ranges::find_if(epochs_, [&](const Epoch& each) { return each.measured.epoch == epoch; });
  return found == epochs_.end() ? nullptr : &*found;
}

void StepInterval::add(const StepInterval& later) {
  steps += later.steps;
  begun_bytes += later.begun_bytes;
  bytes += later.bytes;
  open_bytes += later.open_bytes;
  busy += later.busy;
  last_step = later.last_step;
  saved_bytes += later.saved_bytes;
}

void MeasuredSteps::Sum::add(const StepInterval& interval) {
  steps += interval.steps;
  bytes += interval.begun_bytes;
  saved_bytes += interval.saved_bytes;
}

void MeasuredSteps::add(const StepInterval& interval) {
  const StepBytes step_bytes = mean(interval.steps, interval.begun_bytes, interval.saved_bytes);
  const bool is_like_the_last = step_bytes.bytes == std::exchange(latest_step_, step_bytes).bytes;
  const Pending step{epochs_.empty() ? 0 : epochs_.back().measured.epoch, interval};
  if (counts_all_) return count(step);
  const std::optional<Pending> last = std::exchange(pending_, std::nullopt);
  if (is_like_the_last) {
    if (last.has_value()) count(*last);
    return count(step);
  }
  pending_ = step;
  if (last.has_value()) leave_out(*last);
}

void MeasuredSteps::count(const Pending& step) {
  is_first_ = false;
  counted_.add(step.interval);
  Epoch* const epoch = find(step.epoch);
  if (epoch == nullptr) return;
  if (step.interval.is_countable) {
    count(*epoch, step.interval);
  } else {
    epoch->left_out += step.interval.open_bytes;
  }
}

void MeasuredSteps::count(Epoch& epoch, const StepInterval& interval) {
  epoch.bytes += interval.bytes;
  control::Measured& measured = epoch.measured;
  measured.steps += interval.steps;
  measured.step_bytes += interval.begun_bytes;
  measured.saved_bytes += interval.saved_bytes;
  measured.last_step = std::max(measured.last_step, interval.last_step);
  measured.bytes = epoch.bytes > epoch.left_out ? epoch.bytes - epoch.left_out : 0;
  measured.open_bytes = interval.open_bytes;
  measured.communication_seconds += absl::ToDoubleSeconds(interval.busy);
  const bool is_mean = counts_all_ && counted_.steps > 0;
  counted_step_ = is_mean ? mean(counted_.steps, counted_.bytes, counted_.saved_bytes)
                          : mean(interval.steps, interval.begun_bytes, interval.saved_bytes);
}

// Requests in flight at the end of a step that does not count may end in one that does.
void MeasuredSteps::leave_out(const Pending& step) {
  if (!std::exchange(is_first_, false)) unlike_.add(step.interval);
  if (Epoch* const epoch = find(step.epoch)) {
    epoch->left_out += step.interval.open_bytes;
    if (step.interval.is_countable) epoch->unlike.add(step.interval);
  }
  if (are_unlike_steps_many()) count_all();
}

bool MeasuredSteps::are_unlike_steps_many() const {
  if (unlike_.steps < kLeastUnlike) return false;
  const uint64_t alike_bytes = counted_.steps == 0 ? 0 : unlike_.steps * (counted_.bytes / counted_.steps);
  const uint64_t beyond = unlike_.bytes - std::min(unlike_.bytes, alike_bytes);
  const bool are_rare = kFew * unlike_.steps < unlike_.steps + counted_.steps;
  return beyond > (unlike_.bytes + counted_.bytes) / (are_rare ? 2 : kFew);
}

// Figures only grow, since a reader compares them with earlier ones. So this cannot be taken back.
void MeasuredSteps::count_all() {
  counts_all_ = true;
  counted_.steps += unlike_.steps;
  counted_.bytes += unlike_.bytes;
  counted_.saved_bytes += unlike_.saved_bytes;
  for (Epoch& epoch : epochs_) {
    StepInterval unlike = std::exchange(epoch.unlike, {});
    if (unlike.steps == 0) continue;
    epoch.left_out -= unlike.open_bytes;
    unlike.open_bytes = epoch.measured.open_bytes;
    count(epoch, unlike);
  }
  if (pending_.has_value()) count(*std::exchange(pending_, std::nullopt));
}

void MeasuredSteps::count_rest() {
  if (pending_.has_value()) leave_out(*std::exchange(pending_, std::nullopt));
  if (figures().empty()) count_all();
}

void MeasuredSteps::clear() {
  std::deque<Epoch> epochs;
  for (const Epoch& each : epochs_) epochs.push_back({.measured = {.epoch = each.measured.epoch}});
  *this = {};
  epochs_ = std::move(epochs);
}

std::vector<control::Measured> MeasuredSteps::figures() const {
  std::vector<control::Measured> figures;
  for (const Epoch& each : epochs_) {
    if (each.measured.steps > 0) figures.push_back(each.measured);
  }
  return figures;
}

}  // namespace gleaner::runtime
