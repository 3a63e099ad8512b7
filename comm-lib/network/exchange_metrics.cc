#include "comm-lib/network/exchange_metrics.h"

namespace gleaner::network {

PushMetrics::PushMetrics(prometheus::Registry& registry, const prometheus::Labels& labels)
    : pushed_bytes_(registry, labels, "gleaner_worker_pushed_bytes_total",
                    "Payload bytes pushed to summers, repeated pushes included."),
      repeated_pushes_(
          registry, labels, "gleaner_worker_repeated_pushes_total",
          "Pushes of partitions that were repeated after a new connection, a deferral or a change of owner."),
      results_(registry, labels, "gleaner_worker_results_total", "Results of partitions received."),
      deferred_(registry, labels, "gleaner_worker_deferred_pushes_total",
                "Pushes that a summer deferred because it had no memory."),
      stalls_(registry, labels, "gleaner_worker_window_stalls_total",
              "Times that the window or an owner's credit grew because no result arrived."),
      moved_(registry, labels, "gleaner_worker_moved_partitions_total",
             "Partitions in flight that a change of plan gave to another owner."),
      handed_(registry, labels, "gleaner_worker_handed_results_total",
              "Results sent to a new owner for other workers, because their earlier owner was lost or replaced."),
      retained_bytes_(
          metrics::add_gauge(registry, labels, "gleaner_worker_retained_bytes",
                             "Bytes of results retained until every worker has them, and of the last running sums.")),
      outstanding_bytes_(metrics::add_gauge(registry, labels, "gleaner_worker_outstanding_bytes",
                                            "Bytes pushed whose results have not arrived.")),
      window_bytes_(
          metrics::add_gauge(registry, labels, "gleaner_worker_window_bytes",
                             "Size of the window: bytes that may be in flight to the summers of other machines.")) {}

void PushMetrics::update(const session::Counters& session) {
  pushed_bytes_.follow(static_cast<double>(session.pushed_bytes));
  repeated_pushes_.follow(static_cast<double>(session.repeated_pushes));
  results_.follow(static_cast<double>(session.results));
  deferred_.follow(static_cast<double>(session.deferred));
  stalls_.follow(static_cast<double>(session.stalls));
  moved_.follow(static_cast<double>(session.moved));
  handed_.follow(static_cast<double>(session.handed));
  retained_bytes_.Set(static_cast<double>(session.retained_bytes));
  outstanding_bytes_.Set(static_cast<double>(session.outstanding_bytes));
  window_bytes_.Set(static_cast<double>(session.window_bytes));
}

SliceMetrics::SliceMetrics(prometheus::Registry& registry, const prometheus::Labels& labels)
    : slices_(registry, labels, "gleaner_worker_slices_total",
              "Slices of partitions sent to other workers by schedules, repeated slices included."),
      bytes_(registry, labels, "gleaner_worker_slice_bytes_total", "Payload bytes of these slices."),
      repeated_(registry, labels, "gleaner_worker_repeated_slices_total",
                "Slices that were sent again over a new connection."),
      duplicates_(registry, labels, "gleaner_worker_duplicate_slices_total",
                  "Slices received that this worker already had."),
      results_(registry, labels, "gleaner_worker_scheduled_results_total",
               "Partitions that this worker has summed by schedules."),
      unconfirmed_bytes_(metrics::add_gauge(registry, labels, "gleaner_worker_unconfirmed_slice_bytes",
                                            "Bytes of slices that peers have not confirmed, headers included.")),
      window_bytes_(metrics::add_gauge(registry, labels, "gleaner_worker_slice_window_bytes",
                                       "Size of the window of each peer: bytes of slices that it may leave "
                                       "unconfirmed.")) {}

void SliceMetrics::update(const executor::Counters& executor) {
  slices_.follow(static_cast<double>(executor.slices));
  bytes_.follow(static_cast<double>(executor.slice_bytes));
  repeated_.follow(static_cast<double>(executor.repeated_slices));
  duplicates_.follow(static_cast<double>(executor.duplicate_slices));
  results_.follow(static_cast<double>(executor.results));
  unconfirmed_bytes_.Set(static_cast<double>(executor.unconfirmed_bytes));
  window_bytes_.Set(static_cast<double>(executor.window_bytes));
}

}  // namespace gleaner::network
