// Bottleneck: a link in virtual time that summers share with the machine's owner, as a fluid model.
//
//   workers' links, each with a queue that stands ──▶ the summers' link ── queue ──▶ summers
//   the owner's traffic ─────────────────────────────────┘
//
// Every summer receives at its pace. Its SummerPace gets what a real summer would measure: round trips as they were
// some time ago, with noise, and with outliers of single workers whose processor wakes up late. The workers' links are
// idle in the first fifth of a second, in which connections are made.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/scavenger/peer_delays.h"
#include "common/scavenger/summer_pace.h"

namespace gleaner::scavenger {

enum class Owner {
  kNone,
  kElastic,  // a CUBIC connection that takes all it can get
  kSteady,   // half of the link
  kBursts,   // the whole link, for half a second in each second
};

enum class Discipline {
  kTailDrop,
  kEcn,   // marks packets above a fifth of the queue; owner and summers heed the marks
  kFair,  // a queue for each connection, served in turn
};

struct Scenario {
  double bits_per_second = 200e6;
  absl::Duration queue = absl::Milliseconds(30);
  absl::Duration base = absl::Milliseconds(1);  // base round trip
  Discipline discipline = Discipline::kTailDrop;
  uint32_t summers = 1;
  uint32_t workers = 4;
  double planned = 0.9;                              // share of the link, all summers together
  absl::Duration standing = absl::Milliseconds(10);  // mean queueing delay on each worker's link
  absl::Duration noise = absl::Microseconds(100);    // of a measurement
  double late = 0.01;                                // share of measurements that are up to 20 ms too long
  Owner owner = Owner::kNone;
  absl::Duration owner_begin = absl::Seconds(5), owner_end = absl::Seconds(20);
  absl::Duration clock_jump;  // of the summers' clocks, when the owner begins
  uint64_t seed = 1;

  std::string to_string() const;
};

// The traffic of one second.
struct Second {
  double owner_bits = 0;
  double summers_bits = 0;
  double least_share = 1;  // of all summers, at the second's end: their share of the planned pace
  double most_share = 0;
};

class Bottleneck {
 public:
  explicit Bottleneck(const Scenario& scenario);

  // Runs until `end`. Returns what happened in each second so far.
  const std::vector<Second>& run(absl::Duration end);
  // Returns the delay in the link's queue that a share `q` of the time did not exceed, since the owner began.
  absl::Duration delay_quantile(double q) const;

 private:
  struct SummerState {
    SummerPace pace;
    std::vector<PeerDelays> workers;  // what each worker measures of its connections to the others
    uint64_t congestion = 0;
    double next_report = 0;
    double backlog = 0;  // Discipline::kFair: seconds of the link's time
    bool lost = false;
  };
  struct Cubic {
    double window = 15e3 * 8;  // bits
    double before_cut = 0;
    double since_cut = 0;
    bool slow_start = true;
  };

  void step();
  void move_worker_queues();
  double owner_rate() const;
  void grow_owner(bool congested);
  void serve_in_order(double owner_rate);
  void serve_fairly(double owner_rate);
  void report(SummerState& summer);
  double summer_rate(const SummerState& summer) const;

  const Scenario scenario_;
  std::mt19937_64 random_;
  const double step_, base_, limit_;  // seconds
  double now_ = 0;
  double backlog_ = 0;        // seconds of the link's time
  double owner_backlog_ = 0;  // Discipline::kFair
  std::vector<double> worker_queues_;
  std::deque<std::pair<double, double>> history_;  // time, backlog_
  std::vector<SummerState> summers_;
  std::unique_ptr<Cubic> cubic_;  // while the elastic owner is there
  std::vector<Second> seconds_;
  std::vector<double> delays_;
};

}  // namespace gleaner::scavenger
