// SummerPace decides at which pace a summer uses its link, in each direction, so that the machine's owners do not
// notice it: from the round trips of the summer's connections, and from what its workers report of theirs.
//
//   on_path()   a connection's round trip ──▶ QueueingDelay ─┐
//   on_report() a worker's mean delay ───────────────────────┴▶ LinkDelay ──▶ PaceController ──▶ bits_per_second()
//
// Lost packets count as congestion of the summer's link only if more than half of the workers' connections have lost
// some lately: a loss on one of them may come from that worker's own link. Pure; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "common/scavenger/link_delay.h"
#include "common/scavenger/pace_controller.h"
#include "common/scavenger/queueing_delay.h"

namespace gleaner::scavenger {

class SummerPace {
 public:
  static constexpr absl::Duration kRound = absl::Milliseconds(5);  // between two calls of end_round()
  static constexpr absl::Duration kLossMemory = absl::Milliseconds(100);

  explicit SummerPace(const Law& law = Law()) : controller_(law) {}

  // Sets the pace at which the summer may use a link that nobody else uses; 0: unknown, and there is no limit.
  void set_planned(double bits_per_second) { planned_ = bits_per_second; }

  // The worker has reported m(i) (link_delay.h).
  void on_report(uint32_t worker, std::optional<absl::Duration> among_workers);
  // The connection to the worker has this round-trip time (zero: unknown at present), and `congestion` packets of it
  // were lost or marked since it began.
  void on_path(uint32_t worker, absl::Duration now, absl::Duration round_trip, uint64_t congestion);
  // The connection to the worker has ended. Its base delay counts for the next connection as well.
  void remove(uint32_t worker);
  // Decides. To be called each kRound, after on_path() for every connection.
  void end_round(absl::Duration now);

  // Returns the pace in each direction, for all workers together; 0: no limit.
  double bits_per_second() const { return controller_.share() * planned_; }
  double planned() const { return planned_; }
  double share() const { return controller_.share(); }
  // Returns the queueing delay on the summer's link in the last round; nullopt: unknown.
  std::optional<absl::Duration> delay() const { return delay_; }

 private:
  struct Worker {
    bool is_connected = false;
    QueueingDelay delay;
    std::optional<absl::Duration> among_workers;
    uint64_t congestion = 0;
    absl::Duration lost_at = -absl::InfiniteDuration();
  };

  std::map<uint32_t, Worker> workers_;
  LinkDelay link_;
  PaceController controller_;
  double planned_ = 0;
  absl::Duration longest_round_trip_;  // of this round
  std::optional<absl::Duration> delay_;
};

}  // namespace gleaner::scavenger
