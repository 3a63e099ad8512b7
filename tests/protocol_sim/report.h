// Report: the events of simulated runs (Coverage), and the reason of a failed run.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/protocol_sim/scenario.h"

namespace gleaner::sim {

// Counts of events over all seeds. If a count stays zero, the simulation has not tested that event.
struct Coverage {
  uint64_t seeds = 0;
  uint64_t events = 0;
  uint64_t frames = 0;
  uint64_t duplicates = 0;  // frames that the weather duplicated
  uint64_t disconnects = 0;
  uint64_t lost = 0;          // frames lost by a broken or cut connection
  uint64_t survivors = 0;     // frames that arrived after their connection broke
  uint64_t repeated = 0;      // pushes sent again
  uint64_t resent = 0;        // results sent again
  uint64_t late_results = 0;  // results that the worker already had
  uint64_t defers = 0;
  uint64_t stalls = 0;         // times that a window or credit grew
  uint64_t early_commits = 0;  // plans that a frame of their epoch committed before the coordinator's message
  uint64_t plans = 0;          // plans committed by the last coordinator
  uint64_t recovered = 0;      // recovery plans committed: they leave out a lost summer
  uint64_t moved_plans = 0;    // optional plans committed: they reassign all partitions
  uint64_t given_up = 0;       // optional plans withdrawn
  uint64_t reports = 0;        // workers' reports of summers that they can't reach
  uint64_t reports_lost = 0;   // reports whose stream broke
  uint64_t summers_lost = 0, summers_came = 0, summers_left = 0;
  uint64_t coordinators_lost = 0;  // and replaced
  uint64_t coordinators_gone = 0;  // lost for good
  uint64_t repeated_welcomes = 0;
  uint64_t early_faults = 0;  // faults before the job had begun
  uint64_t workers_lost = 0;
  uint64_t lost_alone = 0;  // summers lost after the coordinator was lost for good
  uint64_t errors = 0;      // workers that ended with an error
  uint64_t usurped = 0;
  uint64_t fenced = 0;  // frames, or keys of a kAck, that were meant for an earlier owner
  uint64_t takeovers = 0;
  uint64_t moved = 0;     // partitions that changed their owner while in flight
  uint64_t handed = 0;    // results and running sums that new owners fetched from workers
  uint64_t in_place = 0;  // push_pulls whose output was their input
  uint64_t sums = 0;
  uint64_t accumulated = 0;       // answers with running sums
  uint64_t scheduled_sums = 0;    // partitions that a worker has summed by a schedule
  uint64_t repeated_slices = 0;   // slices sent again
  uint64_t duplicate_slices = 0;  // slices that the worker already had
  uint64_t mixed_plans = 0;       // jobs that ended with a plan of several strategies
  uint64_t scheduled_losses = 0;  // workers lost from a job whose plan has a schedule
  uint64_t strategy_changes = 0;  // plans committed by the last coordinator that change strategies
  uint64_t master_changes = 0;    // of these, plans that change the masters of two-level
  uint64_t held = 0;              // push_pulls that waited for a change of strategy
  uint64_t lost_in_hold = 0;      // members and coordinators lost while push_pulls were held
  uint64_t ended_in_hold = 0;     // workers that ended since a change hung without a coordinator
  std::array<std::array<uint64_t, kMoments>, kFaultKinds> faults{};  // by Fault and Moment

  Coverage& operator+=(const Coverage& other) {
    using Counts = std::array<uint64_t, sizeof(Coverage) / sizeof(uint64_t)>;  // all fields are counts
    auto counts = std::bit_cast<Counts>(*this);
    const auto added = std::bit_cast<Counts>(other);
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += added[i];
    return *this = std::bit_cast<Coverage>(counts);
  }
};

class Report {
 public:
  explicit Report(bool trace) : trace_(trace) {}

  Coverage coverage;
  std::string mutation;  // name of the active mutation (mutations.h); empty: none

  // Records a failure. Only the first one is kept.
  template <typename... Parts>
  void fail(const Parts&... parts) {
    if (!failure_) failure_ = absl::StrCat(parts...);
  }
  const std::optional<std::string>& failure() const { return failure_; }

  template <typename... Parts>
  void trace(int64_t now, const Parts&... parts) const {
    if (trace_) std::printf("%10.3f ms  %s\n", static_cast<double>(now) * 1e-6, absl::StrCat(parts...).c_str());
  }

 private:
  const bool trace_;
  std::optional<std::string> failure_;
};

}  // namespace gleaner::sim
