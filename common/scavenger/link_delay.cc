#include "common/scavenger/link_delay.h"

#include <algorithm>
#include <vector>

namespace gleaner::scavenger {
namespace {

// Returns the median; the mean of the middle two if there are two. `values` is not empty.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

std::optional<absl::Duration> LinkDelay::estimate(absl::Duration now) {
  const std::optional<absl::Duration> newest = estimate_now(now);
  if (!newest.has_value()) {
    last_.clear();
    return std::nullopt;
  }
  last_.push_back(*newest);
  if (last_.size() > kFilter) last_.pop_front();
  return *std::min_element(last_.begin(), last_.end());
}

std::optional<absl::Duration> LinkDelay::estimate_now(absl::Duration now) const {
  std::vector<double> to_summer, among;  // seconds
  for (const auto& [worker, delays] : workers_) {
    // Until a worker has reported, its own full link could pass for the summer's. A single worker has nothing to
    // report.
    const bool has_reported = delays.among_workers.has_value() || workers_.size() == 1;
    if (now - delays.at > kFresh || !has_reported) continue;
    to_summer.push_back(absl::ToDoubleSeconds(delays.to_summer));
    among.push_back(absl::ToDoubleSeconds(delays.among_workers.value_or(absl::ZeroDuration())));
  }
  if (to_summer.empty()) return std::nullopt;
  const auto n = static_cast<double>(to_summer.size());
  double all_links = 0;
  for (const double mean : among) all_links += mean / 2;
  std::vector<double> estimates;
  for (size_t i = 0; i < to_summer.size(); ++i) {
    const double link = n > 2 ? ((n - 1) * among[i] - all_links) / (n - 2) : among[i] / 2;
    estimates.push_back(to_summer[i] - std::max(0.0, link));
  }
  const double least = *std::min_element(to_summer.begin(), to_summer.end());
  return absl::Seconds(std::clamp(median(std::move(estimates)), 0.0, std::max(0.0, least)));
}

}  // namespace gleaner::scavenger
