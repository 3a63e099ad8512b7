// Agent samples the machine once a second, publishes the machine's profile when it has changed noticeably and at least
// every 30 s, and advertises room for summers on its node.
//
// Agent has two threads: "gln-sample" reads and estimates and never waits for the API server; "gln-publish" writes. If
// the API server can't be reached, sampling continues, and the profile is written once the server can be reached again.
// With AgentOptions::measure Agent also has the threads of Measurements.
#pragma once

#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "agent/discover/machine.h"
#include "agent/measurements.h"
#include "agent/probe/peer_probe.h"
#include "agent/publish/metrics.h"
#include "agent/publish/nvml_report.h"
#include "agent/publish/profile.h"
#include "agent/publish/publisher.h"
#include "agent/sampler.h"
#include "agent/spare/estimator.h"
#include "common/base/env.h"
#include "common/kube/cache.h"
#include "common/kube/cancellation.h"
#include "common/kube/client.h"
#include "common/kube/events.h"

namespace gleaner::agent {

struct AgentOptions {
  std::string node;  // name of the Node object
  std::string version;
  discover::MachineSource source;
  std::string cgroup_root = "/";
  double bits_per_second = 0;  // --bandwidth; 0: not given
  // --measure-*: the agent measures latencies and bandwidths to other agents and, while no other source gives the
  // speed, the speed. Absent: it never measures.
  std::optional<probe::PeerProbe::Options> measure;
  double margin = 0.1;  // share of CPUs, memory and bandwidth that the agent never counts as spare
  uint32_t summers_per_node = 4;
  absl::Duration sample_period = absl::Seconds(1);
  absl::Duration discover_period = absl::Minutes(1);
  absl::Duration publish_period = absl::Seconds(30);
  absl::Duration publish_at_most = absl::Seconds(5);  // shortest time between two writes
};

class Agent {
 public:
  // `env`, `client` and `registry` must outlive the agent. Internal: hwloc fails on this machine. Unavailable:
  // measure->listen is not free.
  static absl::StatusOr<std::unique_ptr<Agent>> start(const Env& env, kube::Client& client, AgentOptions options,
                                                      prometheus::Registry& registry);
  ~Agent();  // ends both threads and cancels a write in progress
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  // Returns the reason for which the profile was not written within the last two minutes; empty if it was. Thread safe.
  std::string why_not_ready() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The values that the sampling thread passes to the publishing thread.
  struct Latest {
    publish::NodeState node;
    api::NodeProfileStatus status;
    bool speed_doubtful = false;
  };

  Agent(const Env& env, kube::Client& client, AgentOptions options, prometheus::Registry& registry);
  absl::Status begin(kube::Client& client, prometheus::Registry& registry);
  bool pause(absl::Duration time, bool (Agent::*done)() const) ABSL_LOCKS_EXCLUDED(mutex_);
  void sample_forever();
  void sample(absl::Duration now) ABSL_LOCKS_EXCLUDED(mutex_);
  bool has_something() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return latest_.has_value(); }
  bool has_news() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return latest_.has_value() && publish::differs_noticeably(published_, latest_->status);
  }
  void publish_forever();
  absl::Status publish_latest() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status restore_measurements(api::NodeProfileStatus& status);
  void tell_of_nvml();
  void tell_of_speed(const Latest& latest);

  const Env env_;
  const AgentOptions options_;
  publish::Metrics metrics_;

  // The members below are used by the sampling thread only.
  Sampler sampler_;
  spare::Estimator estimator_;
  publish::NvmlReport nvml_report_;
  std::vector<api::Condition> conditions_;
  uint64_t samples_ = 0;
  std::unique_ptr<Measurements> measurements_;  // null: this agent does not measure; "gln-publish" uses it, too

  // The members below are used by the publishing thread only.
  kube::Cancellation cancel_;
  const std::unique_ptr<kube::Client> writer_;
  publish::Publisher publisher_;
  std::string told_reason_;

  std::unique_ptr<kube::Cache<publish::NodeState>> nodes_;
  std::unique_ptr<kube::Cache<publish::PodOnNode>> pods_;
  std::unique_ptr<kube::EventRecorder> events_;

  mutable absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Latest> latest_ ABSL_GUARDED_BY(mutex_);
  api::NodeProfileStatus published_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Duration> published_at_ ABSL_GUARDED_BY(mutex_);
  std::string last_error_ ABSL_GUARDED_BY(mutex_);

  std::thread sampling_, publishing_;
};

// Returns this machine's profile from two samples, `pause` apart, without a cluster: the whole machine counts as
// allocatable, and no resource as requested.
absl::StatusOr<api::NodeProfile> profile_once(const Env& env, const AgentOptions& options, absl::Duration pause);

}  // namespace gleaner::agent
