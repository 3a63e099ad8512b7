#include "coordinator/measure/step_times.h"

#include <algorithm>
#include <utility>

namespace gleaner::coordinator {

using control::Measured;

void StepTimes::on_plan(uint32_t epoch, absl::Duration now) {
  epoch_ = epoch;
  since_ = begin_ = now;
  for (Worker& worker : workers_) worker = {};
}

void StepTimes::on_report(uint32_t rank, const control::Report& report, absl::Duration now) {
  if (rank % local_ranks_ != 0) return;
  const auto measured = std::ranges::find(report.measured, epoch_, &Measured::epoch);
  if (measured == report.measured.end()) return;
  Worker& worker = workers_[rank / local_ranks_];
  if (measured->steps < worker.latest.steps) worker = {};  // the rank was started again
  worker.latest = *measured;
  worker.round_trip_seconds = report.round_trip_seconds;
  if (worker.begin.has_value() && report.link_bits_per_second > 0) {
    worker.link_bits_per_second += report.link_bits_per_second;
    ++worker.link_reports;
  }
  if (worker.begin.has_value() || now - since_ < kFirstTime || measured->steps < kFirstSteps) return;
  worker.begin = *measured;
  begin_ = now;
}

std::optional<StepTime> StepTimes::take(absl::Duration now) {
  if (now - begin_ < kTime || workers_.empty()) return std::nullopt;
  const auto is_over = [](const Worker& worker) {
    return worker.begin.has_value() && worker.latest.steps >= worker.begin->steps + kSteps;
  };
  if (!std::ranges::all_of(workers_, is_over)) return std::nullopt;
  std::optional<StepTime> least;
  std::vector<double> link_bits_per_second, round_trip_seconds;
  for (Worker& worker : workers_) {
    const auto steps = static_cast<double>(worker.latest.steps - worker.begin->steps);
    const double seconds = (worker.latest.communication_seconds - worker.begin->communication_seconds) / steps;
    const double bytes = static_cast<double>(worker.latest.bytes - worker.begin->bytes) / steps;
    if (!least.has_value() || seconds < least->seconds) least = {epoch_, seconds, bytes, {}, {}};
    link_bits_per_second.push_back(worker.link_reports == 0 ? 0 : worker.link_bits_per_second / worker.link_reports);
    round_trip_seconds.push_back(worker.round_trip_seconds);
    worker = {.begin = worker.latest, .latest = worker.latest};
  }
  least->link_bits_per_second = std::move(link_bits_per_second);
  least->round_trip_seconds = std::move(round_trip_seconds);
  begin_ = now;
  return least;
}

}  // namespace gleaner::coordinator
