#include "operator/autoscale/autoscaler.h"

#include <utility>

#include "operator/autoscale/auction.h"
#include "operator/autoscale/reduction.h"

namespace gleaner::autoscale {

std::map<std::string, Verdict> Autoscaler::round(const std::vector<Job>& jobs, absl::Duration now) {
  std::map<std::string, Verdict> verdicts;
  std::map<std::string, JobMemory> known;
  for (const Job& job : jobs) {
    const auto found = memories_.find(job.key);
    JobMemory memory = found != memories_.end() ? std::move(found->second) : JobMemory(job, settings_, now);
    Reduction(settings_, job, now, memory, verdicts[job.key]).decide();
    known.insert_or_assign(job.key, std::move(memory));
  }
  memories_ = std::move(known);
  Auction(settings_, jobs, now, memories_, verdicts).hold();
  for (const Job& job : jobs) {
    const Verdict& verdict = verdicts.at(job.key);
    const bool goes_on = verdict.add.has_value() || verdict.code == Code::kPausing;
    if (!job.summers.empty() && !goes_on) memories_.at(job.key).beginning = false;
  }
  return verdicts;
}

}  // namespace gleaner::autoscale
