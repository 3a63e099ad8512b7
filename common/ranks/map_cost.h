// MapCost evaluates a rank map while a search changes it: the cost of cost.h, and an energy that also rewards progress
// which the cost does not show. A step costs as much as its slowest message, so most changes of a map leave the cost
// equal. The energy of a step adds a part of its messages' mean time, which falls with each message that becomes
// faster, and so leads the search over such plateaus. Pure.
//
// The cost is a sum over patterns of steps (collective::StepPattern). A change of some ranks evaluates only the
// patterns in which one of them takes part, those with most bytes first, and stops as soon as the sum exceeds the limit
// up to which the search accepts the change.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/collective/cost.h"
#include "common/ranks/path_table.h"
#include "common/ranks/rank_map.h"

namespace gleaner::ranks {

class MapCost {
 public:
  struct Value {
    double seconds = 0;
    double energy = 0;
  };

  // `bytes`: of the whole vector, which the schedule cuts into `chunks` chunks. `paths` must outlive the object.
  MapCost(std::vector<collective::StepPattern> patterns, uint32_t ranks, uint32_t chunks,
          const topology::Topology& topology, const PathTable& paths, uint64_t bytes);

  // Returns the most energy of a map with this cost.
  static double most_energy(double seconds) { return (1 + kMeanPart) * seconds; }

  // Takes a map, with all its patterns, and returns its value.
  Value reset(const RankMap& host_of);
  // Evaluates a map that differs from the one taken last in the hosts of the ranks `changed`. Returns nothing if its
  // energy is above `limit`. The next call of take() makes it the map that was taken last.
  std::optional<Value> evaluate(const RankMap& host_of, std::span<const uint32_t> changed, double limit);
  void take();

  // Returns the time of a message of mean size between two hosts without other traffic.
  double message_seconds(uint32_t from, uint32_t to) const;
  // Returns a lower bound of the cost under any map: each message has the least latency between two hosts, and each
  // rank the fastest link.
  double bound_seconds() const;
  // Returns the number of channels that reset() visits, in the mean over random maps.
  double visits() const;

 private:
  // The part of the mean message time in a step's energy. Any small number leads over plateaus; a large one would
  // prefer many fast messages to a fast slowest one.
  static constexpr double kMeanPart = 0.05;

  struct Pattern {
    std::vector<collective::Transfer> transfers;
    double steps = 0;
    Value value;      // of one step, under the map that was taken last
    Value candidate;  // under the map that was evaluated last
  };

  Value measure(const Pattern& pattern, const RankMap& host_of);
  // Makes affected_ the patterns in which one of these ranks takes part, in their order.
  void find_affected(std::span<const uint32_t> changed);

  const topology::Topology& topology_;
  const PathTable& paths_;
  std::vector<double> seconds_per_chunk_;           // by channel
  std::vector<Pattern> patterns_;                   // those with most bytes first
  std::vector<std::vector<uint32_t>> patterns_of_;  // by rank
  double mean_chunks_ = 0;                          // of a message
  Value total_;
  std::vector<uint32_t> affected_;
  std::vector<bool> is_affected_;  // by pattern; all false between calls
  std::vector<uint32_t> load_;     // by channel, in chunks; all 0 between calls
};

}  // namespace gleaner::ranks
