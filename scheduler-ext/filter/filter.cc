#include "scheduler-ext/filter/filter.h"

#include <utility>

namespace gleaner::extender {

std::vector<placement::Refusal> filter(const placement::Pod& pod, const Snapshot& snapshot) {
  std::vector<placement::Refusal> refusals(snapshot.machines.size());
  if (pod.role != "summer" || !snapshot.known) return refusals;
  for (size_t i = 0; i < refusals.size(); ++i) {
    const placement::Machine* machine = snapshot.machines[i].get();
    refusals[i] = machine == nullptr ? placement::Refusal{"node(s) that Gleaner's scheduler extender does not know yet",
                                                          "Gleaner's scheduler extender does not know the node yet"}
                                     : placement::judge_summer(*machine, snapshot.request, snapshot.now).refusal;
  }
  return refusals;
}

}  // namespace gleaner::extender
