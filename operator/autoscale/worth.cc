#include "operator/autoscale/worth.h"

#include <algorithm>
#include <cmath>

namespace gleaner::autoscale {
namespace {

bool is_bandwidth(double bits) { return bits >= plan::kMinBitsPerSecond && bits <= plan::kMaxBitsPerSecond; }

}  // namespace

Worth::Worth(const Job& job, const Settings& settings, const std::vector<uint32_t>& without)
    : settings_(settings), fleet_{job.worker_bits_per_second, {}, job.push_ratio}, bytes_(job.bytes_per_step) {
  for (const Summer& summer : job.summers) {
    const bool goes = summer.leaving || std::find(without.begin(), without.end(), summer.index) != without.end();
    if (goes || !is_bandwidth(summer.bits_per_second)) continue;
    fleet_.summer_bits_per_second.push_back(summer.bits_per_second);
    indices_.push_back(summer.index);
  }
  if (!(bytes_ > 0) || !plan::validate(fleet_).ok()) {
    unknown_ = Code::kNotPlanned;
    return;
  }
  bound_ = plan::bound_seconds(fleet_, bytes_);
  step_seconds_ = exposed_seconds_ = bound_;
  if (settings_.measured) judge_metrics(job);
}

void Worth::judge_metrics(const Job& job) {
  if (!job.step_seconds.has_value() || !job.exposed_seconds.has_value()) {
    unknown_ = Code::kNoMetrics;
    return;
  }
  const double step = job.step_seconds->value, exposed = job.exposed_seconds->value;
  if (!std::isfinite(step) || step <= 0 || !std::isfinite(exposed) || exposed < 0) {
    unknown_ = Code::kNoMetrics;
    return;
  }
  if (std::max(job.step_seconds->age, job.exposed_seconds->age) > settings_.fresh) unknown_ = Code::kStaleMetrics;
  step_seconds_ = step;
  exposed_seconds_ = std::min(exposed, step);
}

double Worth::gain_seconds(double bits_per_second) const {
  if (bytes_ <= 0 || !is_bandwidth(bits_per_second)) return 0;
  plan::Fleet more = fleet_;
  more.summer_bits_per_second.push_back(bits_per_second);
  if (!plan::validate(more).ok()) return 0;
  return std::clamp(bound_ - plan::bound_seconds(more, bytes_), 0.0, exposed_seconds_);
}

double Worth::loss_seconds(uint32_t index) const {
  const auto place = std::find(indices_.begin(), indices_.end(), index);
  if (place == indices_.end() || bytes_ <= 0) return 0;
  // Communication that computation hides costs no time. It is unknown how much more the computation could hide; if the
  // removal exposes communication, the autoscaler adds a summer again.
  if (share(exposed_seconds_) < settings_.min_loss) return 0;
  plan::Fleet fewer = fleet_;
  fewer.summer_bits_per_second.erase(fewer.summer_bits_per_second.begin() + (place - indices_.begin()));
  return std::max(0.0, plan::bound_seconds(fewer, bytes_) - bound_);
}

}  // namespace gleaner::autoscale
