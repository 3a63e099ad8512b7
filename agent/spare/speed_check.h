// SpeedCheck detects traffic that is faster than a NIC's claimed speed.
//
// SpeedCheck compares windows of ten seconds, since some drivers update their counters only once a second.
#pragma once

#include <optional>

#include "agent/spare/rate.h"
#include "agent/spare/sample.h"

namespace gleaner::spare {

struct CheckedSpeed {
  double bits_per_second = 0;  // the claim, or the fastest traffic if that contradicts the claim
  api::SpeedSource source = api::SpeedSource::kUnknown;
  bool contradicted = false;  // traffic was faster than a flag, a label or sysfs claims
  double claimed_bits_per_second = 0;
};

class SpeedCheck {
 public:
  // Returns the speed to use. A contradicted claim stays contradicted until it changes.
  CheckedSpeed update(const Sample& sample);

 private:
  void observe(const Sample& sample);

  double claim_ = 0;
  api::SpeedSource claimed_by_ = api::SpeedSource::kUnknown;
  double fastest_ = 0;  // bits per second over a window, the faster direction
  std::optional<absl::Duration> window_begin_;
  Rate received_, sent_;
};

}  // namespace gleaner::spare
