#include "operator/autoscale/worth.h"

#include <algorithm>
#include <cmath>

namespace gleaner::autoscale {
namespace {

bool is_bandwidth(double bits) { return bits >= plan::kMinBitsPerSecond && bits <= plan::kMaxBitsPerSecond; }

}  // namespace

Worth::Worth(const Job& job, const Settings& settings, const std::vector<uint32_t>& without)
    : settings_(settings),
      job_(job),
      fleet_{job.worker_bits_per_second, {}, job.push_ratio},
      bytes_(job.bytes_per_step) {
  for (const Summer& summer : job.summers) {
    const bool goes = summer.leaving || std::find(without.begin(), without.end(), summer.index) != without.end();
    if (goes || !is_bandwidth(summer.bits_per_second)) continue;
    fleet_.summer_bits_per_second.push_back(summer.bits_per_second);
    summer_nodes_.push_back(summer.node);
    indices_.push_back(summer.index);
  }
  if (!(bytes_ > 0) || !plan::validate(fleet_).ok()) {
    unknown_ = Code::kNotPlanned;
    return;
  }
  if (job.fabric != nullptr) {
    network_.emplace(bound_of(fleet_, summer_nodes_));
    near_.emplace(*job.fabric, job.worker_nodes);
  }
  bound_ = network_.has_value() ? network_->seconds_per_byte() * bytes_ : plan::bound_seconds(fleet_, bytes_);
  step_seconds_ = exposed_seconds_ = bound_;
  if (settings_.measured) judge_metrics();
}

fabric::StepBound Worth::bound_of(const plan::Fleet& fleet, const std::vector<std::string>& summer_nodes) const {
  fabric::StepBound bound(*job_.fabric, fleet.push_ratio);
  for (uint32_t i = 0; i < fleet.n(); ++i) bound.add_worker(job_.worker_nodes[i], fleet.worker_bits_per_second[i]);
  for (uint32_t j = 0; j < fleet.k(); ++j) bound.add_summer(summer_nodes[j], fleet.summer_bits_per_second[j]);
  return bound;
}

std::optional<uint32_t> Worth::group_of(const Candidate& machine) const {
  return job_.fabric == nullptr ? std::nullopt : job_.fabric->group_of(machine.node);
}

uint32_t Worth::nearness(const Candidate& machine) const { return near_.has_value() ? near_->of(machine.node) : 0; }

void Worth::judge_metrics() {
  if (!job_.step_seconds.has_value() || !job_.exposed_seconds.has_value()) {
    unknown_ = Code::kNoMetrics;
    return;
  }
  const double step = job_.step_seconds->value, exposed = job_.exposed_seconds->value;
  if (!std::isfinite(step) || step <= 0 || !std::isfinite(exposed) || exposed < 0) {
    unknown_ = Code::kNoMetrics;
    return;
  }
  if (std::max(job_.step_seconds->age, job_.exposed_seconds->age) > settings_.fresh) unknown_ = Code::kStaleMetrics;
  step_seconds_ = step;
  exposed_seconds_ = std::min(exposed, step);
}

double Worth::gain_seconds(const Candidate& machine, double least) const {
  if (bytes_ <= 0 || !is_bandwidth(machine.bits_per_second)) return 0;
  plan::Fleet more = fleet_;
  more.summer_bits_per_second.push_back(machine.bits_per_second);
  if (!plan::validate(more).ok()) return 0;
  const double with =
      network_.has_value()
          ? network_->with_summer(machine.node, machine.bits_per_second, (bound_ - least) / bytes_) * bytes_
          : plan::bound_seconds(more, bytes_);
  return std::clamp(bound_ - with, 0.0, exposed_seconds_);
}

double Worth::loss_seconds(uint32_t index) const {
  const auto place = std::find(indices_.begin(), indices_.end(), index);
  if (place == indices_.end() || bytes_ <= 0) return 0;
  // Communication that computation hides costs no time. It is unknown how much more the computation could hide; if the
  // removal exposes communication, the autoscaler adds a summer again.
  if (share(exposed_seconds_) < settings_.min_loss) return 0;
  plan::Fleet fewer = fleet_;
  fewer.summer_bits_per_second.erase(fewer.summer_bits_per_second.begin() + (place - indices_.begin()));
  double without = 0;
  if (network_.has_value()) {
    std::vector<std::string> nodes = summer_nodes_;
    nodes.erase(nodes.begin() + (place - indices_.begin()));
    without = bound_of(fewer, nodes).seconds_per_byte() * bytes_;
  } else {
    without = plan::bound_seconds(fewer, bytes_);
  }
  return std::max(0.0, without - bound_);
}

}  // namespace gleaner::autoscale
