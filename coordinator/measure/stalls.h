// Stalls finds ranks that have not begun a push_pull that other ranks wait for
// (docs/protocol.md#ranks-that-others-wait-for).
//
// Ranks report the oldest push_pull that they wait for. Once some rank has waited for kStallAfter, the coordinator asks
// all ranks how many push_pulls of that tensor they have begun. Ranks that have not begun the push_pull are *behind*. A
// warning names them, and is repeated as long as a rank waits. If ranks wait for several tensors, the coordinator asks
// about one tensor after the other, so it also finds ranks that wait for each other in a circle. Pure; belongs to a
// Core.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

inline constexpr absl::Duration kStallAfter = absl::Seconds(5);
inline constexpr absl::Duration kWarnEvery = absl::Seconds(5);
inline constexpr absl::Duration kMissingEvery = absl::Seconds(15);  // between warnings of missing members

// The oldest unfinished push_pull of a rank.
struct OldestPushPull {
  std::string tensor;
  uint64_t step = 0;     // of that tensor
  absl::Duration since;  // when the rank asked for it
  // Members from which the rank awaits frames; the one that has been silent for longest comes first.
  std::vector<uint32_t> members;
};

class Stalls {
 public:
  // `circle_time`: as in circle(), so that questions are asked early enough.
  explicit Stalls(const Roster* roster, absl::Duration circle_time = absl::InfiniteDuration())
      : roster_(*roster),
        ask_after_(std::min(kStallAfter, circle_time / 2)),
        ask_every_(std::min(kWarnEvery, circle_time / 8)),
        waiting_(roster->ranks()),
        begun_(roster->ranks()),
        behind_(roster->ranks()) {}

  // Records the push_pull that `rank` waits for. None: `rank` does not wait.
  void on_waiting(uint32_t rank, std::optional<OldestPushPull> waiting) { waiting_[rank] = std::move(waiting); }
  // The push_pulls of a rank that contributes nothing to the tensor, so that no other rank waits for it.
  static constexpr uint64_t kAll = UINT64_MAX;
  // Records how many push_pulls of this tensor `rank` has begun.
  void on_begun(uint32_t rank, const std::string& tensor, uint64_t push_pulls);
  const std::optional<OldestPushPull>& waiting(uint32_t rank) const { return waiting_[rank]; }
  // Returns the connected rank that has waited for longest, if any rank waits.
  std::optional<uint32_t> longest() const;

  // Returns the tensor that the coordinator now has to ask all ranks about, if there is one.
  std::optional<std::string> ask(absl::Duration now);
  // Returns the warning that follows from the answers, once all ranks have answered or 1 s after the question.
  std::optional<std::string> warning(absl::Duration now);
  // Returns the text of the first warning that still holds, without the time: the rank that the warning names still
  // waits for its push_pull. Empty: none holds. Later warnings of other tensors do not replace it.
  std::string lasting() const;

  // A circle of ranks, each of which has waited for `time` for a push_pull that the next one has not begun.
  struct Circle {
    uint32_t rank = 0;  // one of the ranks in the circle
    std::string text;   // names all of them, and the tensors
  };
  // Returns such a circle, if there is one.
  std::optional<Circle> circle(absl::Duration now, absl::Duration time) const;

 private:
  // The ranks that have not begun the push_pull that some rank waits for, by the last answers.
  struct Behind {
    std::string tensor;
    uint64_t step = 0;
    std::vector<uint32_t> ranks;
  };

  std::optional<uint32_t> next_to_ask_about(absl::Duration now) const;
  // Returns the ranks that `rank` waits for, if it has waited for `time`.
  std::vector<uint32_t> waits_for(uint32_t rank, absl::Duration now, absl::Duration time) const;
  bool waits(uint32_t rank) const;  // whether it waits for the push_pull that was asked about
  bool waits(uint32_t rank, const OldestPushPull& push_pull) const;
  bool is_behind(uint32_t rank) const;  // whether it answered that it has not begun that push_pull
  bool is_answered() const;
  std::string describe(const std::string& since) const;
  std::string describe_awaited(const std::vector<uint32_t>& waiting) const;

  const Roster& roster_;
  const absl::Duration ask_after_, ask_every_;
  std::vector<std::optional<OldestPushPull>> waiting_;  // by rank
  std::optional<OldestPushPull> asked_;                 // the push_pull that ranks are being asked about
  absl::Duration asked_at_;
  std::vector<std::optional<uint64_t>> begun_;  // by rank: the answers
  std::vector<Behind> behind_;                  // by rank that waits
  std::string last_;                            // the last tensor that was asked about
  OldestPushPull warned_of_;                    // the push_pull that `warned_` is about
  std::string warned_;                          // the text of lasting()
  absl::Duration next_;                         // earliest time of the next question
  absl::Duration next_warning_;
};

}  // namespace gleaner::coordinator
