// MapCost evaluates rank maps for a search: the cost of cost.h, and an energy that also rewards progress which the cost
// does not show. A schedule costs as much as its longest path, so many changes of a map leave the cost equal. The
// energy adds a part of the messages' mean times, which fall with each message that becomes faster, and so leads the
// search over such plateaus. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/collective/longest_path.h"
#include "common/collective/step_patterns.h"
#include "common/ranks/path_table.h"
#include "common/ranks/rank_map.h"

namespace gleaner::ranks {

class MapCost {
 public:
  struct Value {
    double seconds = 0;
    double energy = 0;
  };

  // `bytes`: of the whole vector, which the schedule cuts into `chunks` chunks. `topology` and `paths` must outlive the
  // object.
  MapCost(std::span<const collective::StepPattern> patterns, uint32_t ranks, uint32_t chunks,
          const topology::Topology& topology, const PathTable& paths, uint64_t bytes);

  // Returns the value of a map, whose first entries are the hosts of the ranks.
  Value evaluate(const RankMap& host_of);

  // Returns the time of a message of mean size between two hosts without other traffic, from processor to processor.
  double message_seconds(uint32_t from, uint32_t to) const;
  // Returns a lower bound of the cost under any map: each message has the least latency between two hosts, and each
  // rank the fastest link and processor.
  double bound_seconds();
  // Returns the number of messages and channels that evaluate() visits, in the mean over random maps.
  double visits() const;

 private:
  // The part of the mean message times in the energy. Any small number leads over plateaus; a large one would prefer
  // many fast messages to a short longest path.
  static constexpr double kMeanPart = 0.05;

  const topology::Topology& topology_;
  const PathTable& paths_;
  std::vector<double> seconds_per_chunk_;  // by channel
  std::vector<double> overhead_of_host_;   // empty: processors take no time
  std::vector<double> overheads_;          // by rank, of the map that is evaluated
  collective::LongestPath longest_path_;
  collective::LongestPath bound_;  // each rank has a channel of its own each way
  double mean_chunks_ = 0;         // of a message
};

}  // namespace gleaner::ranks
