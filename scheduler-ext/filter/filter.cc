#include "scheduler-ext/filter/filter.h"

#include <utility>

namespace gleaner::extender {

std::vector<std::string> filter(const placement::Pod& pod, const Snapshot& snapshot) {
  std::vector<std::string> why_not(snapshot.machines.size());
  if (pod.role != "summer" || !snapshot.known) return why_not;
  for (size_t i = 0; i < why_not.size(); ++i) {
    const placement::Machine* machine = snapshot.machines[i].get();
    why_not[i] = machine == nullptr ? "Gleaner's scheduler extender does not know the node yet"
                                    : placement::judge_summer(*machine, snapshot.request, snapshot.now).why_not;
  }
  return why_not;
}

}  // namespace gleaner::extender
