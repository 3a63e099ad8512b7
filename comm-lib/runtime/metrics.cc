#include "comm-lib/runtime/metrics.h"

#include "common/base/status_macros.h"

namespace gleaner::runtime {

absl::StatusOr<std::unique_ptr<RankMetrics>> RankMetrics::serve(const Address& address, const Config& config) {
  const prometheus::Labels labels{{"job_name", config.job},
                                  {"worker", std::to_string(config.worker)},
                                  {"local_rank", std::to_string(config.local_rank)}};
  auto rank = std::unique_ptr<RankMetrics>(new RankMetrics(config, labels));
  GLN_ASSIGN_OR_RETURN(rank->server_, metrics::MetricsServer::start(address, rank->registry_));
  return rank;
}

RankMetrics::RankMetrics(const Config& config, const prometheus::Labels& labels)
    : steps_(*registry_, labels, "gleaner_worker_steps_total", "Iterations of training."),
      bytes_(*registry_, labels, "gleaner_worker_reduced_bytes_total", "Bytes of gradient summed over all ranks."),
      communication_(*registry_, labels, "gleaner_worker_communication_seconds_total",
                     "Time with at least one push_pull in flight."),
      waited_(*registry_, labels, "gleaner_worker_wait_seconds_total",
              "Time that callers of gln_wait waited for push_pulls that were not done: exposed communication."),
      pushed_bytes_(*registry_, labels, "gleaner_worker_pushed_bytes_total",
                    "Payload pushed to summers, repeats included."),
      repeated_pushes_(*registry_, labels, "gleaner_worker_repeated_pushes_total",
                       "Partitions pushed again, after a new connection or because a summer put them off."),
      results_(*registry_, labels, "gleaner_worker_results_total", "Sums of partitions received."),
      deferred_(*registry_, labels, "gleaner_worker_deferred_pushes_total", "Pushes that a summer put off."),
      stalls_(*registry_, labels, "gleaner_worker_window_stalls_total",
              "Times the window grew because nothing came back."),
      moved_(*registry_, labels, "gleaner_worker_moved_partitions_total",
             "Partitions that a plan change gave to another summer while they were in flight."),
      handed_(*registry_, labels, "gleaner_worker_handed_results_total",
              "Sums handed on for other workers, because the summer that made them was lost or replaced."),
      retained_bytes_(metrics::add_gauge(*registry_, labels, "gleaner_worker_retained_bytes",
                                         "Bytes of sums kept until every worker has them.")),
      outstanding_bytes_(metrics::add_gauge(*registry_, labels, "gleaner_worker_outstanding_bytes",
                                            "Bytes pushed whose sum is not back yet.")),
      window_bytes_(metrics::add_gauge(*registry_, labels, "gleaner_worker_window_bytes",
                                       "Bytes that may be pushed without a sum back, to other machines' summers.")),
      round_trip_(metrics::add_gauge(*registry_, labels, "gleaner_worker_round_trip_seconds",
                                     "Least round trip of late to the farthest summer; the window covers it.")),
      epoch_(metrics::add_gauge(*registry_, labels, "gleaner_worker_epoch", "Epoch of the plan in force.")),
      summer_(*registry_, config.job),
      transports_(*registry_, labels, config.transports.preferences) {}

void RankMetrics::update(const member::Report& report, absl::Duration waited, uint32_t epoch, const Network* network) {
  steps_.follow(static_cast<double>(report.steps));
  bytes_.follow(static_cast<double>(report.bytes));
  communication_.follow(report.communication_seconds);
  waited_.follow(absl::ToDoubleSeconds(waited));
  epoch_.Set(epoch);
  if (network == nullptr) return;
  round_trip_.Set(absl::ToDoubleSeconds(network->round_trip()));
  if (const session::Counters* const session = network->session_counters(); session != nullptr) {
    pushed_bytes_.follow(static_cast<double>(session->pushed_bytes));
    repeated_pushes_.follow(static_cast<double>(session->repeated_pushes));
    results_.follow(static_cast<double>(session->results));
    deferred_.follow(static_cast<double>(session->deferred));
    stalls_.follow(static_cast<double>(session->stalls));
    moved_.follow(static_cast<double>(session->moved));
    handed_.follow(static_cast<double>(session->handed));
    retained_bytes_.Set(static_cast<double>(session->retained_bytes));
    outstanding_bytes_.Set(static_cast<double>(session->outstanding_bytes));
    window_bytes_.Set(static_cast<double>(session->window_bytes));
  }
  if (network->summer() != nullptr) summer_.update(*network->summer());
  transports_.update(network->transport_counters());
}

}  // namespace gleaner::runtime
