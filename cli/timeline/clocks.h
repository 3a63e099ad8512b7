// Converts the times of all members' events in a trace to one clock, by means of the frames in the trace. Pure.
//
// Suppose that a frame leaves member a at time t_a of a's clock and has wholly arrived at b at time t_b of b's clock.
// Then b's clock is ahead of a's by at most t_b - t_a, since the frame took some time. A frame from b to a gives a
// lower bound in the same way. As in NTP (RFC 5905, section 8), the estimated offset is the middle between the tightest
// bounds, and the uncertainty is half their distance: the error is never larger, whatever the network does.
//
// Frames may go around in a cycle of members, and never back: in a ring, say. Then bounds follow from chains of frames:
// the sum of the tightest upper bounds from a to c and from c to b is an upper bound from a to b.
//
// Clocks also run at different rates (some parts per million). The rate is the slope of a line through the offsets of
// several windows of the trace. A slope that differs from zero by less than three standard errors counts as zero.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gleaner::cli {

// A frame that went from one member to another. Times are nanoseconds: departed on the clock of `from`, arrived on the
// clock of `to`.
struct Crossing {
  uint32_t from = 0;
  uint32_t to = 0;
  int64_t departed = 0;
  int64_t arrived = 0;
};

// Converts a member's clock to the clock of the reference member. Each clock has an origin: the time of the member's
// first frame.
struct ClockFit {
  int64_t origin = 0;      // origin of this member's clock
  double base = 0;         // nanoseconds from the reference's origin to this origin, on the reference's clock
  double rate = 1;         // nanoseconds of the reference's clock per nanosecond of this clock
  double uncertainty = 0;  // nanoseconds

  // Converts a time of this clock to nanoseconds since the reference's origin.
  int64_t common(int64_t nanoseconds) const {
    return static_cast<int64_t>(base + rate * static_cast<double>(nanoseconds - origin));
  }
};

// Returns a fit for each member, relative to the reference: the first member with frames (member 0 if there are no
// frames). A member is fitted along the chain of members, between neighbours of which frames went both ways, with the
// smallest sum of uncertainties; without such a chain, by the chains of frames from the reference to the member and
// back. A member without those has no fit.
std::vector<std::optional<ClockFit>> fit_clocks(uint32_t members, std::span<const Crossing> crossings);

}  // namespace gleaner::cli
