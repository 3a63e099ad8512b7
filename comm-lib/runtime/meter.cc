#include "comm-lib/runtime/meter.h"

#include <algorithm>

namespace gleaner::runtime {

void Meter::begin(uint64_t bytes, absl::Duration now) {
  const uint64_t due = marked_steps_ + (busy() ? kStepsWithoutPause : 1);
  if (steps() >= due || (!busy() && !first_.has_value())) mark(now);
  if (in_flight_++ == 0) busy_since_ = now;
  open_bytes_ += bytes;
}

void Meter::end(uint32_t tensor, uint64_t bytes, bool ok, absl::Duration now) {
  if (--in_flight_ == 0) busy_ += now - busy_since_;
  open_bytes_ -= bytes;
  if (!ok) return;
  bytes_ += bytes;
  if (times_.size() <= tensor) times_.resize(tensor + 1, 0);
  most_ = std::max(most_, ++times_[tensor]);
}

void Meter::follow(uint32_t epoch, absl::Duration now) {
  if (!busy()) mark(now);
  epochs_.push_back({epoch});
  if (epochs_.size() > kEpochsKept) epochs_.pop_front();
  first_.reset();
  marked_steps_ = steps();
  if (!busy()) mark(now);
}

Meter::Totals Meter::totals(absl::Duration now) const {
  return {steps(), bytes_, open_bytes_, busy_ + (busy() ? now - busy_since_ : absl::ZeroDuration())};
}

void Meter::mark(absl::Duration now) {
  marked_steps_ = steps();
  if (epochs_.empty()) return;
  const Totals here = totals(now);
  if (!first_.has_value()) {
    first_ = here;
    return;
  }
  // Requests in flight at the first mark began before that mark, so their bytes do not count.
  const uint64_t before = first_->bytes + first_->open_bytes;
  control::Measured& measured = epochs_.back();
  measured.steps = here.steps - first_->steps;
  measured.bytes = here.bytes > before ? here.bytes - before : 0;
  measured.open_bytes = here.open_bytes;
  measured.communication_seconds = absl::ToDoubleSeconds(here.busy - first_->busy);
}

control::Report Meter::report(absl::Duration now, bool last) {
  if (!busy() && (last || steps() > marked_steps_)) mark(now);
  const Totals here = totals(now);
  control::Report report{here.steps, here.bytes, absl::ToDoubleSeconds(here.busy)};
  for (const control::Measured& measured : epochs_) {
    if (measured.steps > 0) report.measured.push_back(measured);
  }
  return report;
}

}  // namespace gleaner::runtime
