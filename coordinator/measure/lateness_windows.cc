#include "coordinator/measure/lateness_windows.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::coordinator {

void LatenessWindows::on_plan(const plan::Plan& plan) {
  epoch_ = plan.epoch;
  summers_ = static_cast<uint32_t>(plan.members.size()) - plan.workers;
  bound_per_byte_ = plan.bandwidths_known() ? plan::bound_seconds(plan::fleet_of(plan), 1) : 0;
  owned_ = plan::owned_bytes(plan);
  owned_by_workers_ = std::accumulate(owned_.begin(), owned_.begin() + plan.workers, uint64_t{0});
  workers_.assign(plan.workers, Worker());
  ready_ = 0;
}

std::optional<LatenessWindows::Window> LatenessWindows::on_report(uint32_t worker, const Report& report,
                                                                  absl::Duration now) {
  if (report.epoch != epoch_ || worker >= workers_.size()) return std::nullopt;
  Worker& what = workers_[worker];
  Sample sample = sample_of(report, now);
  // The counters of a rank that was started again begin at zero.
  if (!what.first.has_value() || sample.steps < what.first->steps) {
    ready_ -= std::exchange(what.is_ready, false) ? 1 : 0;
    what.first = std::move(sample);
    return std::nullopt;
  }
  what.last = std::move(sample);
  const bool is_ready =
      what.last->at - what.first->at >= kLeastTime && what.last->steps - what.first->steps >= kLeastSteps;
  if (is_ready && !std::exchange(what.is_ready, true)) ++ready_;
  if (ready_ < workers_.size()) return std::nullopt;
  return close();
}

LatenessWindows::Sample LatenessWindows::sample_of(const Report& report, absl::Duration now) const {
  Sample sample{now,
                report.steps,
                static_cast<double>(report.bytes),
                report.communication_seconds,
                report.round_trip_seconds,
                std::vector<double>(summers_),
                report.workers_late_seconds};
  const auto workers = static_cast<uint32_t>(workers_.size());
  for (const Late& late : report.late) {
    if (late.member >= workers && late.member - workers < summers_) sample.late[late.member - workers] = late.seconds;
  }
  return sample;
}

// Returns the figures of the window, and begins the next one.
LatenessWindows::Window LatenessWindows::close() {
  Window window;
  for (const Worker& worker : workers_) {
    const double seconds = absl::ToDoubleSeconds(worker.last->at - worker.first->at);
    window.step_seconds = std::max(window.step_seconds, seconds / steps_of(worker));
  }
  for (uint32_t summer = 0; summer < summers_; ++summer) {
    if (const auto late = lateness_of(summer)) window.late.push_back(*late);
  }
  if (owned_by_workers_ == 0 && window.late.empty()) add_all_owners(window);
  for (Worker& worker : workers_) worker = {std::exchange(worker.last, std::nullopt), std::nullopt, false};
  ready_ = 0;
  return window;
}

// Returns whether waits of this length for some summer are long enough to count.
bool LatenessWindows::is_long(const Worker& worker, double wait) const {
  const double communication = worker.last->communication_seconds - worker.first->communication_seconds;
  const double time = absl::ToDoubleSeconds(worker.last->at - worker.first->at);
  const double round_trip = std::max(worker.last->round_trip_seconds, absl::ToDoubleSeconds(kLeastRoundTrip));
  return wait >= kPartOfCommunication * communication && wait >= kPartOfTime * time &&
         wait >= kLeastRoundTrips * round_trip * steps_of(worker) &&
         communication >= kTimesBound * bound_per_byte_ * (worker.last->bytes - worker.first->bytes);
}

// Returns the summer's lateness per step if it counts as late in this window.
std::optional<LatenessWindows::LateSummer> LatenessWindows::lateness_of(uint32_t summer) const {
  LateSummer result{static_cast<uint32_t>(workers_.size()) + summer, std::numeric_limits<double>::infinity()};
  double workers_late = result.seconds;  // per step, the least of all workers
  for (const Worker& worker : workers_) {
    const double late = worker.last->late[summer] - worker.first->late[summer];
    if (!is_long(worker, late)) return std::nullopt;
    result.seconds = std::min(result.seconds, late / steps_of(worker));
    workers_late = std::min(workers_late, (worker.last->workers_late - worker.first->workers_late) / steps_of(worker));
  }
  // Both are multiplied by both numbers of bytes.
  const double per_byte = result.seconds * static_cast<double>(owned_by_workers_);
  const double workers_per_byte = workers_late * static_cast<double>(owned_[result.member]);
  return per_byte >= kTimesWorkers * workers_per_byte ? std::optional(result) : std::nullopt;
}

// Adds all owners, which are CPU summers, if every worker communicates for long.
void LatenessWindows::add_all_owners(Window& window) const {
  double seconds = std::numeric_limits<double>::infinity();
  for (const Worker& worker : workers_) {
    const double communication = worker.last->communication_seconds - worker.first->communication_seconds;
    if (!is_long(worker, communication)) return;
    seconds = std::min(seconds, communication / steps_of(worker));
  }
  for (uint32_t member = static_cast<uint32_t>(workers_.size()); member < owned_.size(); ++member) {
    if (owned_[member] > 0) window.late.push_back({member, seconds});
  }
}

}  // namespace gleaner::coordinator
