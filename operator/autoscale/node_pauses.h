// NodePauses holds the pauses of one job: during a pause the job gets no summer on the node, since a summer of the job
// had to leave the node or was lost there. Times are of one clock, which does not go back.
#pragma once

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"

namespace gleaner::autoscale {

class NodePauses {
 public:
  static constexpr absl::Duration kLongest = absl::Minutes(10);

  // Begins a pause of length `first`. If the node's last pause has ended less than kLongest ago, the pause is twice as
  // long as that one, but not longer than kLongest. Does nothing for an empty `node`.
  void begin(const std::string& node, absl::Duration first, absl::Duration now);
  // Begins a pause of length kLongest.
  void begin_longest(const std::string& node, absl::Duration now) { pauses_[node] = {now + kLongest, kLongest}; }
  bool is_paused(const std::string& node, absl::Duration now) const;

 private:
  struct Pause {
    absl::Duration until;
    absl::Duration length;
  };
  absl::flat_hash_map<std::string, Pause> pauses_;  // by node
};

}  // namespace gleaner::autoscale
