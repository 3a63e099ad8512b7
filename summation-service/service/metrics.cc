#include "summation-service/service/metrics.h"

namespace gleaner::service {

SummerMetrics::SummerMetrics(prometheus::Registry& registry, const std::string& job) {
  const prometheus::Labels labels{{"job_name", job}};
  const auto total = [&](const char* name, const char* help, uint64_t engine::Counters::*count) {
    totals_.push_back({{registry, labels, name, help}, count});
  };
  using Counters = engine::Counters;
  total("gleaner_summer_contributions_total", "Contributions accepted.", &Counters::contributions);
  total("gleaner_summer_sums_total", "Sums of partitions made.", &Counters::sums);
  total("gleaner_summer_summed_bytes_total", "Bytes of sums made.", &Counters::summed_bytes);
  total("gleaner_summer_duplicates_total", "Contributions ignored as duplicates.", &Counters::duplicates);
  total("gleaner_summer_resent_results_total", "Results sent again to a worker that repeated its contribution.",
        &Counters::resent);
  total("gleaner_summer_fenced_frames_total",
        "Frames and acknowledgements dropped because they were meant for an earlier owner.", &Counters::fenced);
  total("gleaner_summer_takeovers_total", "Partitions taken over from another summer.", &Counters::takeovers);
  total("gleaner_summer_handed_results_total", "Sums of another summer that workers handed on to this one.",
        &Counters::handed);
  total("gleaner_summer_deferred_pushes_total", "Pushes deferred because the memory cap was reached.",
        &Counters::deferred);
  memory_ = &metrics::add_gauge(registry, labels, "gleaner_summer_memory_bytes",
                                "Memory of sums in progress, retained results and running sums.");
  epoch_ = &metrics::add_gauge(registry, labels, "gleaner_summer_epoch", "Epoch of the plan in force.");
  workers_ = &metrics::add_gauge(registry, labels, "gleaner_summer_connected_workers", "Workers connected now.");
}

void SummerMetrics::update(const Summer& summer) {
  const engine::Counters counters = summer.counters();
  for (Total& total : totals_) total.counter.follow(static_cast<double>(counters.*total.count));
  memory_->Set(static_cast<double>(counters.memory_bytes + counters.handed_bytes + counters.accumulated_bytes));
  epoch_->Set(summer.epoch());
  workers_->Set(summer.connected_workers());
}

}  // namespace gleaner::service
