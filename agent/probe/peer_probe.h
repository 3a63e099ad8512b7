// PeerProbe measures the speed of this node's network, from time to time, with another node's agent. It does so only
// while no other source states the speed (set_needed), and then does not wait until its LoadBudget allows it. It also
// serves other agents' measurements.
//
// PeerProbe has two threads, the measuring one ("gln-probe") and MeasureServer's. Thread safe.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/probe/measure.h"
#include "common/base/address.h"
#include "common/base/env.h"

namespace gleaner::probe {

class PeerProbe {
 public:
  struct Options {
    Address listen;
    Address peers;                             // a name that resolves to all agents, such as a headless Service
    std::string secret;                        // the same for all agents
    absl::Duration first = absl::Seconds(10);  // before the first measurement
    absl::Duration period = absl::Hours(1);    // after a successful measurement
    absl::Duration retry = absl::Minutes(2);   // after a measurement that failed
  };

  // `budget` pays for all loads, and must outlive the object. Unavailable: the probe can't listen at options.listen.
  static absl::StatusOr<std::unique_ptr<PeerProbe>> start(const Env& env, Options options, LoadBudget& budget);
  ~PeerProbe();  // waits for a measurement or name lookup in progress
  PeerProbe(const PeerProbe&) = delete;
  PeerProbe& operator=(const PeerProbe&) = delete;

  void set_needed(bool needed);  // whether to measure; false at first
  // Returns the greatest of all measurements, since each is a lower bound; 0 if there is none.
  double bits_per_second() const;
  Address address() const { return server_->address(); }  // the address at which it serves measurements

 private:
  PeerProbe(const Env& env, Options options, LoadBudget& budget, std::unique_ptr<MeasureServer> server);
  void run();
  bool pause(absl::Duration time);
  absl::StatusOr<double> measure_once();

  const Env env_;
  const Options options_;
  LoadBudget& budget_;
  const std::unique_ptr<MeasureServer> server_;
  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool needed_ ABSL_GUARDED_BY(mutex_) = false;
  double bits_per_second_ ABSL_GUARDED_BY(mutex_) = 0;
  std::thread thread_;  // declared last, since it uses all members above
};

}  // namespace gleaner::probe
