#include "operator/autoscale/job_memory.h"

#include <algorithm>
#include <utility>

namespace gleaner::autoscale {

JobMemory::JobMemory(const Job& job, const Settings& settings, absl::Duration now)
    : beginning(job.summers.empty()), idle(settings) {
  for (const Summer& summer : job.summers) added = std::max(added, now - summer.age);
}

void remove_summer(Removal removal, JobMemory& memory, Verdict& verdict) {
  if (verdict.remove.empty()) {
    verdict.code = removal.code;
    verdict.why = removal.why;
  }
  memory.removals[removal.index] = removal;
  verdict.remove.push_back(std::move(removal));
}

std::vector<uint32_t> removed_summers(const Verdict& verdict) {
  std::vector<uint32_t> indices;
  for (const Removal& removal : verdict.remove) indices.push_back(removal.index);
  return indices;
}

uint32_t count_staying(const Job& job, const Verdict& verdict) {
  const std::vector<uint32_t> indices = removed_summers(verdict);
  return static_cast<uint32_t>(std::count_if(job.summers.begin(), job.summers.end(), [&](const Summer& summer) {
    return !summer.leaving && std::find(indices.begin(), indices.end(), summer.index) == indices.end();
  }));
}

}  // namespace gleaner::autoscale
