// CommonSteps finds the steps up to which all ranks have reported, so that times of the same steps are compared.
//
// Each rank reports its totals several times a second, at the end of a step of its own choice. A step whose end every
// rank has reported is common. If steps are so short that no step is common, totals are estimated between two reports:
//
//   step       1  2  3  4  5  6  7
//   rank 0     x     x     x        step 3 is common, the ends of later steps can be estimated up to step 5
//   rank 1        x  x        x
//
// Pure. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "coordinator/measure/rank_totals.h"
#include "coordinator/measure/rank_waits.h"

namespace gleaner::coordinator {

class CommonSteps {
 public:
  // If a rank reports this many steps while another reports none, comparison begins anew with the next common step.
  static constexpr size_t kMostKept = 64;

  explicit CommonSteps(size_t ranks) : points_(ranks, {{0, RankTotals{}}}) {}

  // Records the totals of `rank` at the end of step `number`. Returns whether this step is common now.
  bool add(size_t rank, uint64_t number, const RankTotals& totals);
  // Returns the latest step whose end is reported or can be estimated for each rank. Empty: there is none after the
  // last step given to advance().
  std::optional<uint64_t> reached() const;
  // Returns the steps of each rank from the step of the last call to `number`, which is common or reached(). Empty if
  // comparison begins with this step.
  std::vector<RankSteps> advance(uint64_t number);
  // Returns the totals of a rank at the end of the step last given to advance().
  const RankTotals& last(size_t rank) const { return points_[rank].begin()->second; }

 private:
  using Points = std::map<uint64_t, RankTotals>;  // by number of the step

  static RankTotals at(const Points& points, uint64_t number);
  void restart();

  std::vector<Points> points_;               // by rank; the first is that of the step last given to advance()
  std::map<uint64_t, size_t> reports_;       // by number of the step: ranks that have reported it
  std::optional<uint64_t> last_number_ = 0;  // the step last given to advance(); empty: comparison begins anew
};

}  // namespace gleaner::coordinator
