#include "scheduler-ext/filter/filter.h"

#include <utility>

namespace gleaner::extender {

std::vector<std::string> filter(const placement::Pod& pod, const Picture& picture) {
  std::vector<std::string> why_not(picture.machines.size());
  if (pod.role != "summer" || !picture.known) return why_not;
  for (size_t i = 0; i < why_not.size(); ++i) {
    const placement::Machine* machine = picture.machines[i].get();
    why_not[i] = machine == nullptr ? "not known to Gleaner's scheduler extender yet"
                                    : placement::judge_summer(*machine, picture.request, picture.now).why_not;
  }
  return why_not;
}

}  // namespace gleaner::extender
