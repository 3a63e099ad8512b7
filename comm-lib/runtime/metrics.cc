#include "comm-lib/runtime/metrics.h"

#include "common/base/status_macros.h"

namespace gleaner::runtime {

absl::StatusOr<std::unique_ptr<RankMetrics>> RankMetrics::serve(const Address& address, const Config& config) {
  const prometheus::Labels labels{{"job_name", config.job},
                                  {"worker", std::to_string(config.worker)},
                                  {"local_rank", std::to_string(config.local_rank)}};
  auto rank = std::unique_ptr<RankMetrics>(new RankMetrics(config, labels));
  GLN_ASSIGN_OR_RETURN(rank->server_, metrics::serve(address, rank->registry_));
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
      compressed_(*registry_, labels, "gleaner_worker_compressed_elements_total",
                  "Elements of compressed tensors that this worker has rounded to the type in which they travel."),
      clipped_(*registry_, labels, "gleaner_worker_clipped_elements_total",
               "Compressed elements that were finite, and infinite after the rounding."),
      flushed_(*registry_, labels, "gleaner_worker_flushed_elements_total",
               "Compressed elements that were not zero, and zero after the rounding."),
      exchanges_(*registry_, labels),
      round_trip_(metrics::add_gauge(
          *registry_, labels, "gleaner_worker_round_trip_seconds",
          "Recent least round-trip time to the farthest summer; the window is large enough to cover it.")),
      overhead_(metrics::add_gauge(*registry_, labels, "gleaner_worker_message_overhead_seconds",
                                   "Time of the processor to send a message, and to receive one; 0: not measured.")),
      epoch_(metrics::add_gauge(*registry_, labels, "gleaner_worker_epoch", "Epoch of the plan in force.")),
      summer_(*registry_, config.job),
      transports_(*registry_, labels, config.transports.preferences) {}

void RankMetrics::update(const control::Report& report, const encoding::Counts& encoded, absl::Duration waited,
                         uint32_t epoch, const network::NetworkStage* network) {
  steps_.follow(static_cast<double>(report.steps));
  bytes_.follow(static_cast<double>(report.bytes));
  communication_.follow(report.communication_seconds);
  waited_.follow(absl::ToDoubleSeconds(waited));
  compressed_.follow(static_cast<double>(encoded.elements));
  clipped_.follow(static_cast<double>(encoded.losses.clipped));
  flushed_.follow(static_cast<double>(encoded.losses.flushed));
  epoch_.Set(epoch);
  if (network == nullptr) return;
  round_trip_.Set(absl::ToDoubleSeconds(network->round_trip()));
  overhead_.Set(absl::ToDoubleSeconds(network->overhead()));
  network->update(exchanges_);
  if (network->summer() != nullptr) summer_.update(*network->summer());
  transports_.update(network->transport_counters());
}

}  // namespace gleaner::runtime
