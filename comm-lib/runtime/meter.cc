#include "comm-lib/runtime/meter.h"

#include <algorithm>

namespace gleaner::runtime {

void Meter::begin(uint64_t bytes, absl::Duration now, Kind kind) {
  const bool lacks_pauses = steps() >= mark_.steps + kStepsWithoutPause && (steps_ == 0 || is_between_steps());
  if (is_mark() || (reductions_.in_flight() > 0 && lacks_pauses)) mark(now);
  requests_.begin(now);
  if (kind == Kind::kReduction) {
    reductions_.begin(now);
    begun_bytes_ += bytes;
    open_bytes_ += bytes;
  }
  is_disturbed_ |= has_both_kinds();
}

void Meter::end(uint32_t tensor, uint64_t bytes, bool ok, absl::Duration now, Kind kind) {
  requests_.end(now);
  if (ok) reduced_bytes_ += bytes;
  if (kind == Kind::kBroadcast) return;
  reductions_.end(now);
  open_bytes_ -= bytes;
  if (!ok) {
    begun_at_step_end_ = std::min(begun_at_step_end_ + bytes, begun_bytes_);
    is_disturbed_ = true;
    return;
  }
  bytes_ += bytes;
  if (times_.size() <= tensor) times_.resize(tensor + 1, 0);
  if (++times_[tensor] <= most_) return;
  most_ = times_[tensor];
  if (steps_ == 0) begun_at_step_end_ = begun_bytes_;
}

// With the first call it becomes known that the program counts its steps. All requests before belong to the first one,
// so a mark between two of them is none.
void Meter::step() {
  if (steps_++ == 0 && mark_.steps > 0) {
    measured_.clear();
    mark_ = {};
    is_whole_ = false;
  }
  begun_at_step_end_ = begun_bytes_;
}

void Meter::follow(uint32_t epoch, absl::Duration now) {
  if (is_mark()) mark(now);
  measured_.follow(epoch);
  has_plan_ = true;
  is_whole_ = is_mark();
}

Meter::Totals Meter::totals(absl::Duration now) const {
  return {steps(), begun_bytes_, bytes_, open_bytes_, reductions_.until(now), saved_bytes_};
}

void Meter::mark(absl::Duration now) {
  const Totals here = totals(now);
  if (here.steps > mark_.steps) {
    measured_.add({.steps = here.steps - mark_.steps,
                   .begun_bytes = here.begun_bytes - mark_.begun_bytes,
                   .bytes = here.bytes - mark_.bytes,
                   .open_bytes = here.open_bytes,
                   .busy = here.busy - mark_.busy,
                   .is_countable = is_whole_ && !is_disturbed_,
                   .last_step = here.steps,
                   .saved_bytes = here.saved_bytes - mark_.saved_bytes});
  }
  mark_ = here;
  is_disturbed_ = false;
  is_whole_ = has_plan_;
}

control::Report Meter::report(absl::Duration now, bool last) {
  if (is_mark()) mark(now);
  if (last) measured_.count_rest();
  control::Report report{steps(), reduced_bytes_, absl::ToDoubleSeconds(requests_.until(now)), measured_.figures()};
  const MeasuredSteps::StepBytes step = measured_.step_bytes();
  report.step_bytes = step.bytes;
  report.saved_bytes = step.saved;
  return report;
}

}  // namespace gleaner::runtime
