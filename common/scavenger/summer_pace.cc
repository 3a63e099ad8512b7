#include "common/scavenger/summer_pace.h"

#include <algorithm>
#include <utility>

namespace gleaner::scavenger {

void SummerPace::on_report(uint32_t worker, std::optional<absl::Duration> among_workers) {
  workers_[worker].among_workers = among_workers;
}

void SummerPace::on_path(uint32_t worker, absl::Duration now, absl::Duration round_trip, uint64_t congestion) {
  Worker& state = workers_[worker];
  state.is_connected = true;
  if (congestion > state.congestion) state.lost_at = now;
  state.congestion = congestion;
  if (round_trip <= absl::ZeroDuration()) return;
  longest_round_trip_ = std::max(longest_round_trip_, round_trip);
  link_.update(worker, {now, state.delay.update(now, round_trip), state.among_workers});
}

void SummerPace::remove(uint32_t worker) {
  link_.remove(worker);
  Worker& state = workers_[worker];
  const QueueingDelay delay = state.delay;
  state = Worker();
  state.delay = delay;
}

void SummerPace::end_round(absl::Duration now) {
  const absl::Duration reaction =
      std::exchange(longest_round_trip_, absl::ZeroDuration()) + static_cast<int64_t>(LinkDelay::kFilter) * kRound;
  delay_ = link_.estimate(now);
  if (!delay_.has_value()) return;
  size_t connected = 0, losing = 0;
  for (const auto& [worker, state] : workers_) {
    connected += state.is_connected ? 1 : 0;
    losing += state.is_connected && now - state.lost_at <= kLossMemory ? 1 : 0;
  }
  const bool loss = 2 * losing > connected;
  if (loss) {
    for (auto& [worker, state] : workers_) state.lost_at = -absl::InfiniteDuration();
  }
  controller_.update(now, *delay_, loss, reaction);
}

}  // namespace gleaner::scavenger
