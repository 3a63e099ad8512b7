// What a simulated run did, and why it failed, if it did.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/sim/scenario.h"

namespace gleaner::sim {

// Sums over all seeds. A run in which one of these stays zero has not tested what it says.
struct Coverage {
  uint64_t seeds = 0;
  uint64_t events = 0;
  uint64_t frames = 0;
  uint64_t duplicates = 0;  // frames delivered twice
  uint64_t disconnects = 0;
  uint64_t lost = 0;          // frames lost with their connection
  uint64_t survivors = 0;     // frames that outlived theirs
  uint64_t repeated = 0;      // pushes sent again
  uint64_t resent = 0;        // results sent again
  uint64_t late_results = 0;  // results that the worker had
  uint64_t defers = 0;
  uint64_t stalls = 0;         // times a window grew
  uint64_t early_commits = 0;  // plans that a frame committed
  uint64_t plans = 0;          // committed, by the last coordinator
  uint64_t recovered = 0;      // plans without a summer that was lost
  uint64_t moved_plans = 0;    // plans that dealt all owners anew
  uint64_t given_up = 0;       // plans that somebody did not follow in time
  uint64_t reports = 0;        // of summers out of reach
  uint64_t reports_lost = 0;   // with their stream
  uint64_t summers_lost = 0, summers_came = 0, summers_left = 0;
  uint64_t coordinators_lost = 0;
  uint64_t coordinators_gone = 0;  // for good
  uint64_t repeated_welcomes = 0;
  uint64_t early_faults = 0;  // while the coordinator gathered
  uint64_t usurped = 0;
  uint64_t fenced = 0;  // frames, or keys, of another owner's time
  uint64_t takeovers = 0;
  uint64_t moved = 0;     // partitions that changed their owner in flight
  uint64_t handed = 0;    // results that workers handed on
  uint64_t in_place = 0;  // push_pulls whose output was their input
  uint64_t sums = 0;
  uint64_t accumulated = 0;                                          // answers with running sums
  std::array<std::array<uint64_t, kMoments>, kFaultKinds> faults{};  // by kind and moment
};

class Report {
 public:
  explicit Report(bool trace) : trace_(trace) {}

  Coverage coverage;
  std::string mutation;  // of the cores, that is in force; empty: none

  // The first failure counts.
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
