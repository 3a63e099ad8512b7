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
      bytes_(*registry_, labels, "gleaner_worker_reduced_bytes_total",
             "Bytes of tensors whose sums over all ranks this rank has received."),
      communication_(*registry_, labels, "gleaner_worker_communication_seconds_total",
                     "Time with at least one push_pull in flight."),
      waited_(
          *registry_, labels, "gleaner_worker_wait_seconds_total",
          "Exposed communication: time that callers of gln_wait waited for push_pulls in flight, and of gln_add_wait."),
      pushed_bytes_(*registry_, labels, "gleaner_worker_pushed_bytes_total",
                    "Payload bytes pushed to summers, repeated pushes included."),
      repeated_pushes_(
          *registry_, labels, "gleaner_worker_repeated_pushes_total",
          "Pushes of partitions that were repeated after a new connection, a deferral or a change of owner."),
      results_(*registry_, labels, "gleaner_worker_results_total", "Results of partitions received."),
      deferred_(*registry_, labels, "gleaner_worker_deferred_pushes_total",
                "Pushes that a summer deferred because it had no memory."),
      stalls_(*registry_, labels, "gleaner_worker_window_stalls_total",
              "Times that the window or an owner's credit grew because no result arrived."),
      moved_(*registry_, labels, "gleaner_worker_moved_partitions_total",
             "Partitions in flight that a change of plan gave to another owner."),
      handed_(*registry_, labels, "gleaner_worker_handed_results_total",
              "Results sent to a new owner for other workers, because their earlier owner was lost or replaced."),
      retained_bytes_(
          metrics::add_gauge(*registry_, labels, "gleaner_worker_retained_bytes",
                             "Bytes of results retained until every worker has them, and of the last running sums.")),
      outstanding_bytes_(metrics::add_gauge(*registry_, labels, "gleaner_worker_outstanding_bytes",
                                            "Bytes pushed whose results have not arrived.")),
      window_bytes_(
          metrics::add_gauge(*registry_, labels, "gleaner_worker_window_bytes",
                             "Size of the window: bytes that may be in flight to the summers of other machines.")),
      round_trip_(metrics::add_gauge(
          *registry_, labels, "gleaner_worker_round_trip_seconds",
          "Recent least round-trip time to the farthest summer; the window is large enough to cover it.")),
      epoch_(metrics::add_gauge(*registry_, labels, "gleaner_worker_epoch", "Epoch of the plan in force.")),
      summer_(*registry_, config.job),
      transports_(*registry_, labels, config.transports.preferences) {}

void RankMetrics::update(const control::Report& report, absl::Duration waited, uint32_t epoch, const Network* network) {
  steps_.follow(static_cast<double>(report.steps));
  bytes_.follow(static_cast<double>(report.bytes));
  communication_.follow(report.communication_seconds);
  waited_.follow(absl::ToDoubleSeconds(waited));
  epoch_.Set(epoch);
  if (network == nullptr) return;
  round_trip_.Set(absl::ToDoubleSeconds(network->round_trip()));
  if (const std::optional<session::Counters> session = network->session_counters()) {
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
