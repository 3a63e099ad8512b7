#include "common/scavenger/pace_controller.h"

#include <algorithm>
#include <cmath>

namespace gleaner::scavenger {
namespace {

constexpr absl::Duration kLongestStep = absl::Milliseconds(100);

}  // namespace

void PaceController::update(absl::Duration now, absl::Duration delay, bool loss, absl::Duration reaction) {
  const bool is_first = last_update_ == absl::InfiniteDuration();
  since_cut_ += is_first ? absl::ZeroDuration() : std::clamp(now - last_update_, absl::ZeroDuration(), kLongestStep);
  last_update_ = now;
  const double excess = absl::FDivDuration(delay, law_.target) - 1;
  if (excess <= 0 && !loss) {
    share_ = std::clamp(grown(), share_, 1.0);
  } else if (since_cut_ >= reaction) {
    cut(std::max(1 - law_.most_cut, std::min(1 - law_.cut * std::max(0.0, excess), loss ? 0.5 : 1.0)));
  }
}

void PaceController::cut(double factor) {
  before_cut_ = share_;
  share_ = after_cut_ = std::max(law_.floor, share_ * factor);
  since_cut_ = absl::ZeroDuration();
}

double PaceController::grown() const {
  const double plateau = std::cbrt((before_cut_ - after_cut_) / law_.growth);
  return before_cut_ + law_.growth * std::pow(absl::ToDoubleSeconds(since_cut_) - plateau, 3);
}

}  // namespace gleaner::scavenger
