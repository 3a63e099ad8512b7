#include "common/trace/recorder.h"

#include <utility>

namespace gleaner::trace {

void Recorder::start() {
  forget();
  // Touches every page, so that no event causes a page fault.
  events_.assign(kMostEvents, Event{});
  on_ = true;
}

void Recorder::stop() { on_ = false; }

Recording Recorder::take() {
  on_ = false;
  events_.resize(used_);
  used_ = 0;
  return {std::exchange(events_, {}), std::exchange(dropped_, 0)};
}

}  // namespace gleaner::trace
