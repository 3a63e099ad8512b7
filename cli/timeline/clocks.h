// One time for all members of a trace, found from the trace itself. Pure.
//
// A frame that leaves a at t_a and is whole at b at t_b says that b's clock is ahead of a's by at most t_b - t_a: by
// that less the time the frame took. One in the other direction bounds it from below. As in NTP (RFC 5905, section 8)
// the offset is taken to lie in the middle between the best bounds, and half their distance is the uncertainty: the
// offset is wrong by no more, whatever the network does. Clocks also run at different rates (parts per million): a line
// through the offsets of parts of the trace gives the rate, where it can be told from zero.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace gleaner::cli {

// A frame that went from one member to another; nanoseconds, each of its own member's clock.
struct Crossing {
  uint32_t from = 0;
  uint32_t to = 0;
  int64_t departed = 0;
  int64_t arrived = 0;
};

// A member's clock against that of the reference.
struct ClockFit {
  int64_t origin = 0;  // of this clock
  double base = 0;     // the reference's nanoseconds, after its own origin, at that moment
  double rate = 1;     // of the reference's time to this clock's
  double uncertainty = 0;

  int64_t common(int64_t nanoseconds) const {
    return static_cast<int64_t>(base + rate * static_cast<double>(nanoseconds - origin));
  }
};

// By member; none: no frames went to and fro between it, directly or over others, and the reference, which is the first
// member that has any (member 0 where none has). From member to member it goes where the sum of uncertainties is least.
std::vector<std::optional<ClockFit>> fit_clocks(uint32_t members, std::span<const Crossing> crossings);

}  // namespace gleaner::cli
