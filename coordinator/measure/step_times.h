// StepTimes measures, by the reports of ranks, how long steps take under the plan in force: in one window after the
// other, of 10 steps and 2.5 s at least.
//
// The time of a step is its communication time on the rank that communicates least. Other ranks wait for that one, so
// their times include differences in their computation. The first second and the first three steps under a plan are
// left out, since tensors may still be summed by the strategies of the plan before. The figures of links are means of
// the reports in a window. Pure; belongs to a StepMonitor.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/control/report.h"

namespace gleaner::coordinator {

struct StepTime {
  uint32_t epoch = 0;
  double seconds = 0;
  double bytes = 0;  // gradient bytes that a worker reduces in a step
  // By worker, as in its reports; 0: not known.
  std::vector<double> link_bits_per_second;
  std::vector<double> round_trip_seconds;
};

class StepTimes {
 public:
  static constexpr uint64_t kSteps = 10;
  static constexpr absl::Duration kTime = absl::Milliseconds(2500);
  static constexpr uint64_t kFirstSteps = 3;
  static constexpr absl::Duration kFirstTime = absl::Seconds(1);

  // `local_ranks`: of each worker. Local rank 0 is its worker's only rank that sums over the network.
  StepTimes(uint32_t ranks, uint32_t local_ranks) : local_ranks_(local_ranks), workers_(ranks / local_ranks) {}

  // Records that the plan of this epoch comes into force.
  void on_plan(uint32_t epoch, absl::Duration now);
  void on_report(uint32_t rank, const control::Report& report, absl::Duration now);
  // Returns the time of the steps in the window and begins the next one, if the window is over for every worker.
  std::optional<StepTime> take(absl::Duration now);

 private:
  struct Worker {
    std::optional<control::Measured> begin;  // of the window
    control::Measured latest;
    double link_bits_per_second = 0;  // the sum of `link_reports` reports in the window
    uint32_t link_reports = 0;
    double round_trip_seconds = 0;  // of the latest report
  };

  const uint32_t local_ranks_;
  std::vector<Worker> workers_;
  uint32_t epoch_ = 0;
  absl::Duration since_;  // when the plan came into force
  absl::Duration begin_;  // of the window
};

}  // namespace gleaner::coordinator
