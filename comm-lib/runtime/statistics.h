// Statistics holds a rank's counters, in the three forms in which they are shown: the report to the coordinator,
// gln_stats for users, and Prometheus metrics. Belongs to the I/O thread, except add_wait() and set_packs(). The caller
// passes the time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "comm-lib/encoding/encoding_stage.h"
#include "comm-lib/include/gleaner/gleaner.h"
#include "comm-lib/network/network_stage.h"
#include "comm-lib/runtime/meter.h"
#include "comm-lib/runtime/metrics.h"
#include "common/member/client.h"
#include "common/plan/plan.h"

namespace gleaner::runtime {

class Statistics {
 public:
  static constexpr absl::Duration kEvery = absl::Milliseconds(250);  // interval at which figures are published

  // Serves the figures as Prometheus metrics at `address`. Unavailable: the port is in use.
  absl::Status serve_metrics(const Address& address, const Config& config);

  // Adds time that the program has waited for requests. Any thread.
  void add_wait(absl::Duration time) { waited_nanoseconds_ += absl::ToInt64Nanoseconds(time); }

  // Sets the packs that reports tell. Any thread.
  void set_packs(const control::Packs& packs) ABSL_LOCKS_EXCLUDED(packs_mutex_);

  // Count events of this rank, as the functions of Meter of the same names.
  void begin(uint64_t bytes, absl::Duration now, Meter::Kind kind = Meter::Kind::kReduction) {
    meter_.begin(bytes, now, kind);
  }
  void end(uint32_t tensor, uint64_t bytes, bool ok, absl::Duration now, Meter::Kind kind = Meter::Kind::kReduction) {
    meter_.end(tensor, bytes, ok, now, kind);
  }
  void step() { meter_.step(); }
  void save(int64_t bytes) { meter_.save(bytes); }
  void follow(uint32_t epoch, absl::Duration now) { meter_.follow(epoch, now); }
  bool busy() const { return meter_.busy(); }

  // Returns whether kEvery has passed since the last publish().
  bool is_due(absl::Duration now) const { return now - published_at_ >= kEvery; }
  // Returns the figures so far. `last`: no further report follows. `network` is null on local ranks above 0. The caller
  // adds the overdue request.
  control::Report report(absl::Duration now, bool last, const network::NetworkStage* network)
      ABSL_LOCKS_EXCLUDED(packs_mutex_);
  // Sets the metrics, if they are served. `epoch`: of the plan in force; 0: none.
  void publish(const control::Report& report, const encoding::Counts& encoded, uint32_t epoch,
               const network::NetworkStage* network, absl::Duration now);

 private:
  Meter meter_;
  std::unique_ptr<RankMetrics> metrics_;  // null: not served
  absl::Duration published_at_;
  std::atomic<int64_t> waited_nanoseconds_ = 0;
  absl::Mutex packs_mutex_;  // no other lock is taken while it is held
  std::optional<control::Packs> packs_ ABSL_GUARDED_BY(packs_mutex_);
};

// Returns the figures for users. `plan`: the plan in force; null: none.
gln_stats stats_of(const control::Report& report, const encoding::Counts& encoded, const plan::Plan* plan);

}  // namespace gleaner::runtime
