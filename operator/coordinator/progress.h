// How fast a job's steps are beside what its plans allowed: over the last minute, by epoch, and since the start.
//
// Every step is compared with the bound of the plan that was in force while it ran; a step that spans a change of plan
// counts for neither plan (comm-lib/runtime/meter.h). So efficiency is at most 1 whatever summers come and go. Figures
// are those of the slowest worker: the one with the most communication per step. Pure: told the time. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"

namespace gleaner::coordinator {

// What a rank reports: Report in coordinator.proto, and common/member/client.h for what each figure counts.
struct Measured {
  uint32_t epoch = 0;
  uint64_t steps = 0;
  uint64_t bytes = 0;
  uint64_t open_bytes = 0;
  double communication_seconds = 0;
};
struct Report {
  uint64_t steps = 0;
  uint64_t bytes = 0;
  double communication_seconds = 0;
  std::vector<Measured> measured;
  double round_trip_seconds = 0;
};

inline constexpr absl::Duration kWindow = absl::Minutes(1);
// A step whose bytes take less than this many round trips is latency-bound. A round trip is taken to be at least
// kLeastRoundTrip: what threads at both ends need to wake up.
inline constexpr int kFewRoundTrips = 4;
inline constexpr absl::Duration kLeastRoundTrip = absl::Microseconds(50);

// What an efficiency says, or why there is none.
enum class Basis {
  kNothingMeasured,   // no step has begun and ended under one plan yet
  kBandwidth,         // the bound over the time measured
  kLatency,           // the step is too small to fill a link: its time is that of round trips
  kUnknownBandwidth,  // nobody said how fast a member's link is
  kBandwidthTooLow,   // steps beat the bound: a link is faster than was said
  kNothingMoves,      // one worker
};
// "bandwidth", "latency", ...: as JSON has it.
absl::string_view to_string(Basis basis);
// For people, in a word: "97.2 %", "latency-bound", "unknown". Empty: nothing measured.
std::string efficiency_text(Basis basis, double efficiency);

struct Figures {
  uint64_t steps = 0;
  double bytes_per_step = 0;  // gradient of one worker
  double step_communication_seconds = 0;
  double goodput_bytes_per_second = 0;  // bytes_per_step / step_communication_seconds
  double bound_seconds = 0;             // mean over the steps; 0: not known, or nothing moves
  double bound_seconds_without_summers = 0;
  double efficiency = 0;  // bound_seconds / step_communication_seconds; 0 unless basis is kBandwidth
  Basis basis = Basis::kNothingMeasured;
};

struct EpochFigures {
  uint32_t epoch = 0;
  uint32_t workers = 0;
  uint32_t summers = 0;
  Figures figures;
};

class Progress {
 public:
  static constexpr size_t kEpochsKept = 256;

  explicit Progress(uint32_t ranks) : ranks_(ranks) {}

  // In force from now on; also a plan that another coordinator began with.
  void on_plan(const plan::Plan& plan);
  void on_report(uint32_t rank, const Report& report, absl::Duration now);

  // The steps that ended within the last minute; where none did, the last that did.
  Figures window(absl::Duration now) const;
  Figures whole() const;
  // Those with steps, in order; the latest kEpochsKept.
  std::vector<EpochFigures> epochs() const;
  const Report& latest(uint32_t rank) const { return ranks_[rank].latest; }
  uint32_t ranks() const { return static_cast<uint32_t>(ranks_.size()); }

 private:
  // Least seconds for a byte of gradient under one plan.
  struct Bound {
    double with_summers = 0;
    double without_summers = 0;
    bool is_known = true;
  };
  // Of one rank, summed over epochs.
  struct Totals {
    uint64_t steps = 0;
    double bytes = 0;
    double bytes_of_unknown_bound = 0;
    double seconds = 0;
    double bound_seconds = 0;
    double bound_seconds_without_summers = 0;
    double open_bytes = 0;  // of the latest epoch; not cumulative
    void add(const Measured& before, const Measured& after, const Bound& bound);
    friend bool operator==(const Totals&, const Totals&) = default;
  };
  struct Sample {
    absl::Duration at;  // when these totals were first reported
    Totals totals;
  };
  struct Rank {
    Report latest;
    std::map<uint32_t, Measured> measured;  // by epoch: those that reports still speak of
    Totals totals;
    absl::Duration at;
    std::deque<Sample> samples;  // earlier totals, no closer than kSampleEvery; the front is where a window begins
  };
  struct Epoch {
    Bound bound;
    EpochFigures figures;  // of ranks that report about later epochs only
  };

  // From `before` to `after`, of the rank with this round trip.
  static Figures between(const Totals& before, const Totals& after, double round_trip_seconds);
  static Figures of(const Measured& measured, const Bound& bound, double round_trip_seconds);
  void forget(Rank& rank, const Report& report);
  void keep_sample(Rank& rank, absl::Duration now);

  std::vector<Rank> ranks_;
  std::map<uint32_t, Epoch> epochs_;
};

}  // namespace gleaner::coordinator
