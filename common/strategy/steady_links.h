// SteadyLinks decides when links have become slower or faster, so that the masters of two-level move by that and not by
// the noise of measurements.
//
// SteadyLinks keeps the ratio of each rank's measured bandwidth to the median, since masters depend on ratios alone.
// The ratio of a rank is steady: it changes only when two measurements in a row differ from it by more than a quarter
// and agree with each other within a quarter. A new ratio within a quarter of 1 counts as 1, so ranks with links of the
// same kind get masters in the same numbers. Two measurements in a row within a tenth of 1 make another ratio 1 again.
// A ratio is known once two measurements in a row agree. It stays while measurements lack the rank's bandwidth.
//
//   measured, Gbit/s    5.1 4.8 5.0 4.9    5.0 5.2 4.9 5.1    4.9 2.9 5.0 5.1    5.0 2.0 4.9 5.1    5.1 2.1 5.0 4.7
//   ratio of rank 1     not known          1                  1                  1                  0.41
//
// Pure.
#pragma once

#include <vector>

namespace gleaner::strategy {

class SteadyLinks {
 public:
  // Takes the bandwidths of the next measurement, by rank: as many each time; 0: not known. Returns whether a ratio has
  // changed.
  bool on_measured(const std::vector<double>& bits_per_second);
  // Returns whether the ratio of each rank is known.
  bool are_known() const;
  // Returns the steady bandwidth of each rank: its ratio times the last median. Requires that the ratios are known.
  std::vector<double> bits_per_second() const;
  const std::vector<double>& ratios() const { return ratios_; }

 private:
  std::vector<double> ratios_;  // 0: not known
  std::vector<double> last_;    // ratios of the last measurement; 0: not known
  double median_ = 0;           // of the last measurement
};

}  // namespace gleaner::strategy
