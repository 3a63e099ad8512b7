#include "common/scavenger/share_reports.h"

namespace gleaner::scavenger {
namespace {

constexpr absl::Duration kAfterFall = absl::Milliseconds(250), kAfterRise = absl::Seconds(1);
constexpr double kFall = 0.75, kRise = 1.25;  // changes that matter, as factors

}  // namespace

std::optional<double> ShareReports::update(absl::Duration now, double share) {
  const double fast = fast_.update(now, share), slow = slow_.update(now, share);
  const bool is_fall = fast < kFall * told_ && now - told_at_ >= kAfterFall;
  const bool is_rise = (slow > kRise * told_ || (slow > 0.99 && told_ < 1)) && now - told_at_ >= kAfterRise;
  if (!is_fall && !is_rise) return std::nullopt;
  told_at_ = now;
  told_ = is_fall ? fast : slow > 0.99 ? 1 : slow;
  return told_;
}

}  // namespace gleaner::scavenger
