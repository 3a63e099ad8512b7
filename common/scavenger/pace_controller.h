// PaceController decides at which pace a summer may use its link, so that it gives way to all other traffic there.
//
// The pace is a share x of the planned pace, between Law::floor and 1, at first 1. Two rules change it:
//
// - Congestion: the queueing delay on the summer's link exceeds Law::target, or the summer's packets are lost. x is
//   multiplied by 1 - cut * (delay / target - 1), and by 1 - most_cut at least; by 1/2 after a loss. The next cut comes
//   no earlier than one reaction time later, when the effect of the last one shows.
// - Otherwise x follows a cubic curve (as TCP CUBIC's window does, RFC 9438): x(t) = x0 + growth * (t - K)^3, where K
//   = cbrt((x0 - x1) / growth), x0 and x1 are the shares before and after the last cut, and t is the time since that
//   cut in seconds. The curve approaches x0 slowly, stays near it, and then grows ever faster. So a summer beside a
//   steady owner rarely makes a queue, and has the whole planned pace again within 3 s after the owner's end: t = K +
//   cbrt((1 - x0) / growth) <= 2.8 s.
//
// Stability, with C the link's speed, f the share that owners leave, and R the reaction time:
//
// - Overshoot: between two cuts x grows by at most 3 * growth * K^2 <= 3 * cbrt(growth) = 1.75 planned paces per
//   second. A queue that this growth makes is seen R later, so its delay passes the target by 1.75 * R^2 / 2 at most,
//   if the planned pace is not above C: 0.4 ms at R = 20 ms.
// - Beside a steady owner x passes f by at most 1.75 * R, is cut to at least a quarter of that, and returns to f after
//   K seconds. So x stays in a fixed interval around f, and its mean is f less at most a quarter of the cut, as the
//   mean of the curve before K is x0 - (x0 - x1) / 4.
// - Beside an owner that takes all it can get, the delay stays above the target, and x falls to the floor within
//   log(1 / floor) / log(1 / (1 - most_cut)) = 4 reaction times.
//
// Sources: RFC 6817 (LEDBAT), section 2.4.2; the multiplicative decrease is LEDBAT++'s. Pure; one thread.
#pragma once

#include "absl/time/time.h"

namespace gleaner::scavenger {

struct Law {
  absl::Duration target = absl::Milliseconds(1);
  double growth = 0.2;  // of the planned pace, per second cubed
  double cut = 0.5;
  double most_cut = 0.75;
  double floor = 0.01;
};

class PaceController {
 public:
  explicit PaceController(const Law& law = Law()) : law_(law) {}

  // The queueing delay on the summer's link is `delay`, and the summer has lost packets since the last call if `loss`.
  // `reaction`: the time from a change of the pace until its effect shows in `delay`. `now` is monotonic time. Time in
  // which no call comes counts as 100 ms at most: the pace does not grow while nothing is measured.
  void update(absl::Duration now, absl::Duration delay, bool loss, absl::Duration reaction);

  // Returns x, the share of the planned pace.
  double share() const { return share_; }

 private:
  void cut(double factor);
  double grown() const;

  const Law law_;
  double share_ = 1;
  double before_cut_ = 1, after_cut_ = 1;  // x0 and x1
  absl::Duration since_cut_;               // t
  absl::Duration last_update_ = absl::InfiniteDuration();
};

}  // namespace gleaner::scavenger
