// RankTotals are the figures that one rank has measured, summed over epochs. A plain value.
#pragma once

namespace gleaner::coordinator {

struct RankTotals {
  double steps = 0;
  double bytes = 0;
  double step_bytes = 0;
  double saved_bytes = 0;  // control::Measured
  double bytes_of_unknown_bound = 0;
  double seconds = 0;  // of communication and waiting
  double waiting_seconds = 0;
  double bound_seconds = 0;
  double bound_seconds_without_summers = 0;
  double open_bytes = 0;  // of the latest epoch; not cumulative
  friend bool operator==(const RankTotals&, const RankTotals&) = default;
};

}  // namespace gleaner::coordinator
