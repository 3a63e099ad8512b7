// Whether a NIC's traffic contradicts what is claimed to be its speed.
//
// Judged over windows of ten seconds, since some drivers bring their counters up to date only once a second.
#pragma once

#include <optional>

#include "agent/spare/rate.h"
#include "agent/spare/sample.h"

namespace gleaner::spare {

struct CheckedSpeed {
  double bits_per_second = 0;  // the claim, or, where traffic was faster, the fastest that was seen
  types::SpeedSource source = types::SpeedSource::kUnknown;
  bool lied = false;  // more was seen than a flag, a label or sysfs allows
  double claimed_bits_per_second = 0;
};

class SpeedCheck {
 public:
  // A claim once contradicted stays so until it changes.
  CheckedSpeed update(const Sample& sample);

 private:
  void observe(const Sample& sample);

  double claim_ = 0;
  types::SpeedSource claimed_by_ = types::SpeedSource::kUnknown;
  double fastest_ = 0;  // bits per second over a window, either way
  std::optional<absl::Duration> window_begin_;
  Rate received_, sent_;
};

}  // namespace gleaner::spare
