// LatenessWindows divides the time under one plan into windows, and says for each window how long a step took and which
// CPU summers were late.
//
// A window ends once every worker has reported kLeastSteps steps and kLeastTime since the window began. Each worker's
// figures are differences between two of its own reports. A summer counts as late in a window if it was late
// (comm-lib/session/owner_waits.h) for every worker, for a good part of the time that the worker spent with sums in
// flight. The least figure of all workers counts: while one worker is slow, the others wait for results although the
// summers are not slow, but the slow worker does not wait. If CPU summers own all partitions, none may be late, since
// they are slow together; then all of them count as late, and a trial (slow_summers.h) tells. All limits are relative
// to what the same job measures. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/measure/efficiency_meter.h"

namespace gleaner::coordinator {

class LatenessWindows {
 public:
  static constexpr absl::Duration kLeastTime = absl::Seconds(1);
  static constexpr uint64_t kLeastSteps = 3;
  // A late summer was late for at least these parts of the time with sums in flight and of all time, in each step for
  // at least kLeastRoundTrips, and for each byte that it owns kTimesWorkers as long as the workers' summers.
  static constexpr double kPartOfCommunication = 1.0 / 3;
  static constexpr double kPartOfTime = 0.1;
  static constexpr int kLeastRoundTrips = 20;
  static constexpr double kTimesWorkers = 2;
  // No summer is late if the time with sums in flight is below this multiple of the plan's bound.
  static constexpr double kTimesBound = 1.5;

  struct LateSummer {
    uint32_t member = 0;  // index in the plan
    double seconds = 0;   // late per step
  };
  struct Window {
    double step_seconds = 0;  // time of a step, of the slowest worker
    std::vector<LateSummer> late;
  };

  // Records that a plan comes into force. The first window begins with each worker's first report under it.
  void on_plan(const plan::Plan& plan);
  // Takes a report of a worker's local rank 0. Returns the window that this report ends, if it ends one.
  std::optional<Window> on_report(uint32_t worker, const Report& report, absl::Duration now);

 private:
  struct Sample {
    absl::Duration at;
    uint64_t steps = 0;
    double bytes = 0;
    double communication_seconds = 0;
    double round_trip_seconds = 0;
    std::vector<double> late;  // by summer
    double workers_late = 0;
  };
  struct Worker {
    std::optional<Sample> first, last;
    bool is_ready = false;  // its samples are far enough apart
  };

  Sample sample_of(const Report& report, absl::Duration now) const;
  static double steps_of(const Worker& worker) { return static_cast<double>(worker.last->steps - worker.first->steps); }
  Window close();
  bool is_long(const Worker& worker, double wait) const;
  std::optional<LateSummer> lateness_of(uint32_t summer) const;
  void add_all_owners(Window& window) const;

  uint32_t epoch_ = 0;
  uint32_t summers_ = 0;
  std::vector<uint64_t> owned_;  // bytes by member, of the plan
  uint64_t owned_by_workers_ = 0;
  double bound_per_byte_ = 0;  // least time in seconds per byte of a step; 0: unknown
  std::vector<Worker> workers_;
  uint32_t ready_ = 0;
};

}  // namespace gleaner::coordinator
