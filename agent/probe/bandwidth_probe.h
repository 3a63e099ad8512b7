// BandwidthProbe measures the bandwidths between this node and others over TCP (measure_path), one at a time, whenever
// BandwidthTurns has a peer that is due and the LoadBudgets of both sides allow it.
//
// BandwidthProbe has one thread, "gln-bandwidth". It looks up no names; set_peers() gives it the addresses. Thread
// safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/probe/bandwidth_turns.h"
#include "agent/probe/choose_peers.h"
#include "agent/probe/load_budget.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "common/base/periodic.h"

namespace gleaner::probe {

// The nodes that an agent measures.
struct BandwidthPeers {
  std::vector<std::string> nodes;            // the most important first
  absl::flat_hash_set<std::string> grouped;  // all nodes in groups
  Texts host_of;                             // addresses of agents, by node
};

struct BandwidthReport {
  std::vector<api::PeerBandwidth> entries;  // as BandwidthTurns::entries()
  Coverage coverage;
  // Measurements that ended well, that a busy peer declined, and that failed otherwise.
  uint64_t measured = 0, declined = 0, failed = 0;
};

class BandwidthProbe {
 public:
  struct Options {
    uint16_t peer_port;                         // of all other agents
    std::string secret;                         // the same for all agents
    absl::Duration period = absl::Seconds(10);  // between two looks at whether a peer is due
  };

  // `budget` must outlive the object.
  BandwidthProbe(const Env& env, Options options, LoadBudget& budget);
  BandwidthProbe(const BandwidthProbe&) = delete;
  BandwidthProbe& operator=(const BandwidthProbe&) = delete;  // the destructor waits for a measurement in progress

  void set_peers(BandwidthPeers peers) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stores entries that an earlier process of this agent has measured.
  void restore(const std::vector<api::PeerBandwidth>& entries) ABSL_LOCKS_EXCLUDED(mutex_);
  BandwidthReport report() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Turn {
    std::string node;
    Address peer;
  };

  void measure_next() ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<Turn> next_turn() ABSL_LOCKS_EXCLUDED(mutex_);

  const Env env_;
  const Options options_;
  LoadBudget& budget_;
  mutable absl::Mutex mutex_;
  Texts host_of_ ABSL_GUARDED_BY(mutex_);
  BandwidthTurns turns_ ABSL_GUARDED_BY(mutex_);
  uint64_t measured_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t declined_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t failed_ ABSL_GUARDED_BY(mutex_) = 0;
  Periodic thread_;  // declared last, since it uses all members above
};

}  // namespace gleaner::probe
