#include "operator/autoscale/node_pauses.h"

#include <algorithm>

namespace gleaner::autoscale {

void NodePauses::begin(const std::string& node, absl::Duration first, absl::Duration now) {
  if (node.empty()) return;
  Pause& pause = pauses_[node];
  const bool again = pause.length > absl::ZeroDuration() && now - pause.until < kLongest;
  pause.length = again ? std::min(2 * pause.length, kLongest) : first;
  pause.until = now + pause.length;
}

bool NodePauses::is_paused(const std::string& node, absl::Duration now) const {
  const auto pause = pauses_.find(node);
  return pause != pauses_.end() && now < pause->second.until;
}

}  // namespace gleaner::autoscale
