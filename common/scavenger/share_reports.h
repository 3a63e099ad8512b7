// ShareReports decides when a summer tells its coordinator which share of its planned pace it gets, since each change
// may move partitions. A fall is told as soon as it lasts a tenth of a second, so that steps do not wait for partitions
// that the summer can't exchange in time. A rise is told once a second at most. Pure; one thread.
#pragma once

#include <optional>

#include "absl/time/time.h"
#include "common/base/smoother.h"

namespace gleaner::scavenger {

class ShareReports {
 public:
  // Takes the present share. Returns the share to tell, if a report is due.
  std::optional<double> update(absl::Duration now, double share);

  double told() const { return told_; }

 private:
  double told_ = 1;
  Smoother fast_{absl::Milliseconds(100), absl::Milliseconds(100)};
  Smoother slow_{absl::Milliseconds(500), absl::Milliseconds(500)};
  absl::Duration told_at_ = -absl::InfiniteDuration();
};

}  // namespace gleaner::scavenger
