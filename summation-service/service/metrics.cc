#include "summation-service/service/metrics.h"

namespace gleaner::service {

SummerMetrics::SummerMetrics(prometheus::Registry& registry, const std::string& job) {
  const prometheus::Labels labels{{"job_name", job}};
  const auto total = [&](const char* name, const char* help, uint64_t engine::Counters::*count) {
    totals_.push_back({{registry, labels, name, help}, count});
  };
  using Counters = engine::Counters;
  total("gleaner_summer_contributions_total", "Contributions of workers accepted.", &Counters::contributions);
  total("gleaner_summer_sums_total", "Sums of partitions made.", &Counters::sums);
  total("gleaner_summer_summed_bytes_total", "Bytes of sums made.", &Counters::summed_bytes);
  total("gleaner_summer_duplicates_total", "Contributions ignored because they were in already.",
        &Counters::duplicates);
  total("gleaner_summer_resent_results_total", "Results sent once more to a worker that came back.", &Counters::resent);
  total("gleaner_summer_fenced_frames_total", "Frames and acknowledgements of another owner's time, dropped.",
        &Counters::fenced);
  total("gleaner_summer_takeovers_total", "Partitions that came from another summer while the job went on.",
        &Counters::takeovers);
  total("gleaner_summer_handed_results_total", "Sums of another summer that a worker handed on.", &Counters::handed);
  total("gleaner_summer_deferred_pushes_total", "Pushes put off because the job's memory cap was reached.",
        &Counters::deferred);
  memory_ = &metrics::add_gauge(registry, labels, "gleaner_summer_memory_bytes",
                                "Memory reserved for sums in progress and results, and of running sums.");
  epoch_ = &metrics::add_gauge(registry, labels, "gleaner_summer_epoch", "Epoch of the plan in force.");
  workers_ = &metrics::add_gauge(registry, labels, "gleaner_summer_connected_workers", "Workers connected now.");
}

void SummerMetrics::update(const Summer& summer) {
  const engine::Counters& counters = summer.counters();
  for (Total& total : totals_) total.counter.follow(static_cast<double>(counters.*total.count));
  memory_->Set(static_cast<double>(counters.memory_bytes + counters.handed_bytes + counters.accumulated_bytes));
  epoch_->Set(summer.epoch());
  workers_->Set(summer.connected_workers());
}

}  // namespace gleaner::service
