#include "operator/autoscale/idle_summers.h"

#include <algorithm>
#include <utility>

namespace gleaner::autoscale {

const Summer* IdleSummers::observe(const Job& job, const Worth& worth, absl::Duration now) {
  const Summer* least = nullptr;
  double least_seconds = 0;
  absl::flat_hash_map<uint32_t, absl::Duration> idle;
  for (const Summer& summer : job.summers) {
    const double seconds = worth.loss_seconds(summer.index);
    if (summer.leaving || !summer.running || worth.share(seconds) >= settings_.min_loss) continue;
    const auto since = since_.find(summer.index);
    idle[summer.index] = since == since_.end() ? now : since->second;
    if (now - idle[summer.index] < patience_) continue;
    if (least == nullptr || seconds <= least_seconds) {
      least = &summer;
      least_seconds = seconds;
    }
  }
  since_ = std::move(idle);
  return least;
}

void IdleSummers::on_removal(absl::Duration now) {
  removed_ = now;
  since_.clear();
}

void IdleSummers::on_addition(absl::Duration now) {
  const bool was_wrong = now - removed_ < 2 * patience_;
  patience_ = was_wrong ? std::min(2 * patience_, kLongestPatience) : settings_.idle;
}

}  // namespace gleaner::autoscale
