// Finds the ranks that others wait for: which rank has not begun a push_pull that another rank waits for.
//
// Ranks report the oldest push_pull that they wait for. Once some rank has waited for kStallAfter, all ranks are asked
// how many push_pulls of that tensor they have begun, and a warning names those that are behind. It is repeated for as
// long as the push_pull waits. Pure; belongs to a Core.
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

// The oldest push_pull of a rank that is not done.
struct Waiting {
  std::string tensor;
  uint64_t step = 0;     // of that tensor
  absl::Duration since;  // when it was asked for
};

class Stalls {
 public:
  explicit Stalls(const Roster* roster) : roster_(*roster), waiting_(roster->ranks()), begun_(roster->ranks()) {}

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

 private:
  bool waits(uint32_t rank) const;  // for what was asked about
  bool is_answered() const;
  std::string describe(absl::Duration now) const;

  const Roster& roster_;
  std::vector<std::optional<Waiting>> waiting_;  // by rank
  std::optional<Waiting> asked_;                 // what ranks are being asked about
  absl::Duration asked_at_;
  std::vector<std::optional<uint64_t>> begun_;  // by rank: the answers
  absl::Duration next_;                         // no sooner is asked again
};

}  // namespace gleaner::coordinator
