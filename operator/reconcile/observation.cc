#include "operator/reconcile/observation.h"

namespace gleaner::reconcile {

NodeView find_node(const Observation& observation, absl::string_view name) {
  const auto found = observation.nodes.find(name);
  return found == observation.nodes.end() ? NodeView{} : found->second;
}

bool has_begun(const Observation& observation) {
  using Phase = coordinator::JobState::Phase;
  return observation.session.has_value() && observation.session->epoch > 0 &&
         observation.session->phase == Phase::kRunning;
}

}  // namespace gleaner::reconcile
