#include "operator/autoscale/sentences.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/units.h"

namespace gleaner::autoscale {

std::string percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

std::string hold_sentence(Code code, absl::Duration fresh) {
  switch (code) {
    case Code::kNoMetrics:
      return "Prometheus has no step time or no waiting time of this job: the summers stay as they are";
    case Code::kStaleMetrics:
      return absl::StrCat("the job's metrics are older than ", absl::FormatDuration(fresh),
                          ": the summers stay as they are");
    default:
      return "the job has no tensors yet: the summers stay as they are";
  }
}

std::string worth_sentence(const Bid& bid, bool measured) {
  const Worth& worth = *bid.bidder->worth;
  return absl::StrCat("a summer with ", format_bits_per_second(bid.machine->bits_per_second), " on ", bid.machine->node,
                      " saves ", percent(bid.share), " of the step of ", format_seconds(worth.step_seconds()),
                      measured ? absl::StrCat(", ", format_seconds(worth.exposed_seconds()), " of which wait for sums")
                               : " (by the bandwidth model)");
}

}  // namespace gleaner::autoscale
