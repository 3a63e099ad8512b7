#include "summation-service/service/published_metrics.h"

#include "common/base/status_macros.h"

namespace gleaner::service {

PublishedMetrics::PublishedMetrics(const std::string& job, const transport::Preferences& preferences,
                                   const Watch* watch)
    : registry_(std::make_shared<prometheus::Registry>()),
      summer_(*registry_, job),
      transport_(*registry_, prometheus::Labels{{"job_name", job}}, preferences),
      watch_(watch) {
  if (watch == nullptr) return;
  others_gauge_ = &metrics::add_gauge(*registry_, {{"job_name", job}}, "gleaner_summer_others_processor_share",
                                      "Share of the processors' time that other processes took in the last 0.75 s.");
}

absl::StatusOr<std::unique_ptr<PublishedMetrics>> PublishedMetrics::serve(const Address& address,
                                                                          const std::string& job,
                                                                          const transport::Preferences& preferences,
                                                                          const Watch* watch) {
  auto metrics = std::unique_ptr<PublishedMetrics>(new PublishedMetrics(job, preferences, watch));
  GLN_ASSIGN_OR_RETURN(metrics->server_, metrics::serve(address, metrics->registry_));
  return metrics;
}

void PublishedMetrics::update(const Summer& summer, const transport::any::Transport& transport, absl::Duration now) {
  if (now - updated_ < kUpdateEvery) return;
  updated_ = now;
  summer_.update(summer);
  transport_.update(transport.counters());
  if (others_gauge_ != nullptr) others_gauge_->Set(watch_->others_share());
}

}  // namespace gleaner::service
