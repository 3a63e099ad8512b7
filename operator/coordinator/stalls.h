// Finds the ranks that others wait for: which rank has not begun a push_pull that another rank waits for.
//
// Ranks report the oldest push_pull that they wait for. Once some rank has waited for kStallAfter, all ranks are asked
// how many push_pulls of that tensor they have begun, and a warning names those that are behind. It is repeated for as
// long as the push_pull waits. If ranks wait for several tensors, they are asked about one after the other: so ranks
// that wait for each other in a circle are found. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/coordinator/roster.h"

namespace gleaner::coordinator {

inline constexpr absl::Duration kStallAfter = absl::Seconds(5);
inline constexpr absl::Duration kWarnEvery = absl::Seconds(5);
inline constexpr absl::Duration kMissingEvery = absl::Seconds(15);  // between warnings of members that are not here

// The oldest push_pull of a rank that is not done.
struct Waiting {
  std::string tensor;
  uint64_t step = 0;     // of that tensor
  absl::Duration since;  // when it was asked for
};

class Stalls {
 public:
  explicit Stalls(const Roster* roster)
      : roster_(*roster), waiting_(roster->ranks()), begun_(roster->ranks()), behind_(roster->ranks()) {}

  // What `rank` waits for, or nothing.
  void on_waiting(uint32_t rank, std::optional<Waiting> waiting) { waiting_[rank] = std::move(waiting); }
  // How many push_pulls of this tensor `rank` has begun.
  void on_begun(uint32_t rank, const std::string& tensor, uint64_t push_pulls);
  const std::optional<Waiting>& waiting(uint32_t rank) const { return waiting_[rank]; }
  // The rank that has waited for longest, of those that are here.
  std::optional<uint32_t> longest() const;

  // The tensor of a stall that ranks are to be asked about now.
  std::optional<std::string> ask(absl::Duration now);
  // What their answers show, once all ranks have answered or had a second for it.
  std::optional<std::string> warning(absl::Duration now);
  // The text of a warning, without the time, for as long as ranks wait for its push_pull; empty when no rank does.
  std::string lasting() const;

  // Ranks each of which has waited for `time` for a push_pull that the next of them has not begun.
  struct Circle {
    uint32_t rank = 0;  // one of them
    std::string text;   // names all of them, and the tensors
  };
  std::optional<Circle> circle(absl::Duration now, absl::Duration time) const;

 private:
  // The answers to the last question about what a rank waits for.
  struct Behind {
    std::string tensor;
    uint64_t step = 0;
    std::vector<uint32_t> ranks;
  };

  std::optional<uint32_t> next_to_ask_about(absl::Duration now) const;
  // The ranks that `rank` has waited for, for `time`.
  std::vector<uint32_t> waits_for(uint32_t rank, absl::Duration now, absl::Duration time) const;
  bool waits(uint32_t rank) const;  // for what was asked about
  bool waits(uint32_t rank, const Waiting& what) const;
  bool is_behind(uint32_t rank) const;  // it has said that it has not begun what was asked about
  bool is_answered() const;
  std::string describe(const std::string& since) const;

  const Roster& roster_;
  std::vector<std::optional<Waiting>> waiting_;  // by rank
  std::optional<Waiting> asked_;                 // what ranks are being asked about
  absl::Duration asked_at_;
  std::vector<std::optional<uint64_t>> begun_;  // by rank: the answers
  std::vector<Behind> behind_;                  // by rank that waits
  std::string last_;                            // tensor that was asked about
  Waiting warned_of_;                           // the push_pull that `warned_` is about
  std::string warned_;                          // lasting()
  absl::Duration next_;                         // no sooner is asked again
};

}  // namespace gleaner::coordinator
