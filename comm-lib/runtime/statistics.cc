#include "comm-lib/runtime/statistics.h"

#include <algorithm>

#include "common/base/status_macros.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::runtime {
namespace {

// Returns the bound of a step with the report's bytes per step. 0 if there is no step, if the bandwidth of a link is
// unknown, if a group of workers sums tensors, or if a schedule does: the coordinator knows its bound.
double bound_seconds(const plan::Plan& plan, const control::Report& report) {
  if (report.steps == 0 || !plan.bandwidths_known()) return 0;
  const auto is_other = [](const plan::Tensor& tensor) { return tensor.schedule.has_value() || !tensor.group.empty(); };
  if (std::ranges::any_of(plan.tensors, is_other)) return 0;
  const double bytes = static_cast<double>(report.bytes) / static_cast<double>(report.steps);
  return plan::bound_seconds(plan::fleet_of(plan), bytes);
}

}  // namespace

absl::Status Statistics::serve_metrics(const Address& address, const Config& config) {
  GLN_ASSIGN_OR_RETURN(metrics_, RankMetrics::serve(address, config));
  return absl::OkStatus();
}

void Statistics::set_packs(const control::Packs& packs) {
  const absl::MutexLock lock(&packs_mutex_);
  packs_ = packs;
}

control::Report Statistics::report(absl::Duration now, bool last, const network::NetworkStage* network) {
  control::Report report = meter_.report(now, last);
  {
    const absl::MutexLock lock(&packs_mutex_);
    report.packs = packs_;
  }
  if (network != nullptr) network->add_figures(report);
  return report;
}

void Statistics::publish(const control::Report& report, const encoding::Counts& encoded, uint32_t epoch,
                         const network::NetworkStage* network, absl::Duration now) {
  published_at_ = now;
  if (metrics_ == nullptr) return;
  metrics_->update(report, encoded, absl::Nanoseconds(waited_nanoseconds_.load()), epoch, network);
}

gln_stats stats_of(const control::Report& report, const encoding::Counts& encoded, const plan::Plan* plan) {
  gln_stats stats = GLN_STATS_INIT;
  stats.steps = report.steps;
  stats.bytes = report.bytes;
  stats.communication_seconds = report.communication_seconds;
  stats.compressed_elements = encoded.elements;
  stats.clipped_elements = encoded.losses.clipped;
  stats.flushed_elements = encoded.losses.flushed;
  if (plan == nullptr) return stats;
  stats.epoch = plan->epoch;
  stats.bound_seconds = bound_seconds(*plan, report);
  return stats;
}

}  // namespace gleaner::runtime
