// EfficiencyMeter compares the steps of a job with the bounds of its plans: over the last minute, by epoch, and since
// the start.
//
// The bound is that of the strategies in force (strategy::stream_bound()). Each step is compared with the bound of the
// plan that was in force while the step ran. A step that spans a change of
// plan counts for neither plan (comm-lib/runtime/meter.h), so efficiency is at most 1, even if summers come and go. All
// figures are those of the slowest rank, the one with sums in flight for the most time per step. The time in which it
// waits for a late rank is no communication (rank_waits.h): steps are *settled* when their waits are known. Pure: the
// caller passes the time. Not thread safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/control/report.h"
#include "common/plan/plan.h"
#include "coordinator/measure/common_steps.h"
#include "coordinator/measure/rank_totals.h"

namespace gleaner::strategy {
struct JobNetwork;
}

namespace gleaner::coordinator {

using control::Late;
using control::Measured;
using control::Report;

inline constexpr absl::Duration kWindow = absl::Minutes(1);
// A step is latency-bound if its bound is less than this many round trips. A round trip is taken to be at least
// kLeastRoundTrip, the time in which threads at both ends wake up.
inline constexpr int kFewRoundTrips = 4;
inline constexpr absl::Duration kLeastRoundTrip = absl::Microseconds(50);

// The basis of an efficiency, or the reason why there is none.
enum class Basis {
  kNothingMeasured,   // no step has begun and ended under one plan yet
  kBandwidth,         // efficiency is bound / measured time
  kLatency,           // the step is too small to fill a link: round trips determine its time
  kUnknownBandwidth,  // the bandwidth of a member's link is unknown
  kBandwidthTooLow,   // steps are faster than the bound: a link is faster than its stated bandwidth
  kNothingMoves,      // the bound is 0: there is one worker
};
// Returns the name in JSON: "bandwidth", "latency", ...
absl::string_view to_string(Basis basis);
// Returns a short text for people: "97.2 %", "latency-bound", "unknown". Empty: nothing is measured.
std::string efficiency_text(Basis basis, double efficiency);

// The time for which the other ranks have waited for this one, by the rank that waited most.
struct WaitedFor {
  uint32_t rank = 0;
  double seconds = 0;
};

struct Figures {
  uint64_t steps = 0;
  double bytes_per_step = 0;              // gradient bytes of one worker
  double dense_bytes_per_step = 0;        // the same without compression and sparse communication
  double step_communication_seconds = 0;  // without step_wait_seconds
  double step_wait_seconds = 0;           // time with sums in flight that lack the contribution of a late rank
  double goodput_bytes_per_second = 0;    // bytes_per_step / step_communication_seconds
  double bound_seconds = 0;               // mean over the steps; 0: unknown, or nothing moves
  double bound_seconds_without_summers = 0;
  double efficiency = 0;  // bound_seconds / step_communication_seconds; 0 unless basis is kBandwidth
  Basis basis = Basis::kNothingMeasured;
  double steps_per_second = 0;        // of a window only; 0: unknown
  std::vector<WaitedFor> waited_for;  // of the whole job only: the ranks for which the others waited most
};

struct EpochFigures {
  uint32_t epoch = 0;
  uint32_t workers = 0;
  uint32_t summers = 0;
  Figures figures;
};

class EfficiencyMeter {
 public:
  static constexpr size_t kEpochsKept = 256;

  // The least seconds per byte of gradient under one plan.
  struct Bound {
    double with_summers = 0;
    double without_summers = 0;
    bool is_known = true;
  };

  // `network`: the network of the job, which must outlive this object; null: one switch.
  explicit EfficiencyMeter(uint32_t ranks, const strategy::JobNetwork* network = nullptr)
      : network_(network), ranks_(ranks), common_(ranks) {}

  // Records that `plan` comes into force. Core also calls this with the plan that it takes up from another coordinator.
  // `summers_at`: the switch of each CPU summer in the network (strategy::network_of()).
  void on_plan(const plan::Plan& plan, std::span<const uint32_t> summers_at = {});
  void on_report(uint32_t rank, const Report& report, absl::Duration now);

  // Returns the bound of a plan.
  Bound bound_of(const plan::Plan& plan) const;
  // Returns the figures of the settled steps that ended within kWindow; if there are none, of the last ones that ended.
  Figures window(absl::Duration now) const;
  // Returns the figures of all steps of the job.
  Figures whole() const;
  // Returns the ranks for which others have waited in all, the longest waits first, and at most `most` ranks.
  std::vector<WaitedFor> waited_for(size_t most) const;
  // Returns the figures of the epochs that have steps, in order, for the latest kEpochsKept of them.
  std::vector<EpochFigures> epochs() const;
  const Report& latest(uint32_t rank) const { return ranks_[rank].latest; }
  // Returns the longest round trip that a rank has measured; 0: none has.
  double round_trip_seconds() const;
  // Returns the median overhead of a message over the ranks that have measured it, so that no single rank decides; 0:
  // none has.
  double overhead_seconds() const;
  // Returns a text that says how many steps this rank and the others last reported: "; its last report was of 5 steps".
  // Empty if no rank has reported a step. For messages about the end of the rank.
  std::string describe_steps(uint32_t rank) const;
  uint32_t ranks() const { return static_cast<uint32_t>(ranks_.size()); }

 private:
  struct Sample {
    absl::Duration at;
    RankTotals totals;
  };
  struct Counted {
    Measured measured;
    double waiting_seconds = 0;
  };
  struct Rank {
    Report latest;
    std::map<uint32_t, Counted> counted;  // by epoch, of the epochs that the latest reports contain
    RankTotals totals;
    Sample settled;              // at the end of the last settled step
    std::deque<Sample> samples;  // earlier settled totals, at least kSampleEvery apart; a window begins at the front
    double waited_for_seconds = 0;
  };
  struct Epoch {
    Bound bound;
    EpochFigures figures;  // of the slowest rank whose reports no longer contain this epoch
  };

  // Returns the figures of a rank between two totals; `round_trip_seconds` is that of the rank.
  static Figures between(const RankTotals& before, const RankTotals& after, double round_trip_seconds);
  static Figures of(const Counted& counted, const Bound& bound, double round_trip_seconds);
  void forget(Rank& rank, const Report& report);
  void settle(uint32_t rank, uint64_t last_step, absl::Duration now);
  void settle_all(absl::Duration now);
  void settle_until(Rank& rank, const RankTotals& totals, absl::Duration now);
  void add_waits(uint64_t last_step);

  const strategy::JobNetwork* const network_;
  std::vector<Rank> ranks_;
  std::map<uint32_t, Epoch> epochs_;
  CommonSteps common_;
  bool are_synchronous_ = true;                    // every sum waits for all ranks
  bool are_aligned_ = true;                        // all ranks have counted their steps since the start of the job
  std::optional<absl::Duration> unsettled_since_;  // empty: all steps are settled
};

}  // namespace gleaner::coordinator
