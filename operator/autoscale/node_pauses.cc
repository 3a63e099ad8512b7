#include "operator/autoscale/node_pauses.h"

#include "common/base/backoff.h"

namespace gleaner::autoscale {

void NodePauses::begin(const std::string& node, absl::Duration first, absl::Duration now) {
  if (node.empty()) return;
  Pause& pause = pauses_[node];
  if (now - pause.until >= kLongest) pause.length = absl::ZeroDuration();
  pause.length = next_pause(pause.length, first, kLongest);
  pause.until = now + pause.length;
}

bool NodePauses::is_paused(const std::string& node, absl::Duration now) const {
  const auto pause = pauses_.find(node);
  return pause != pauses_.end() && now < pause->second.until;
}

}  // namespace gleaner::autoscale
