// What the extender knows of the cluster, for many calls at once, and what it lately said to the scheduler.
//
// Fed by the watches of nodes, profiles and pods. A call takes a picture: shared, unchanging machines, looked up under
// a reader's lock, at a cost that grows with the names asked for and not with the cluster.
//
// Promises: the watch shows that a pod is bound some time after the scheduler chose its node. In between, the node that
// we called the best counts as taken, so that two summers that are scheduled at the same moment are not both told to go
// there. A promise ends when the pod is seen bound or gone, or after kPromiseLife.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "operator/placement/fleet.h"
#include "operator/placement/placement.h"

namespace gleaner::extender {

inline constexpr absl::Duration kPromiseLife = absl::Seconds(30);

struct Picture {
  bool known = false;  // false: there are no profiles at all, so that nothing can be said of any node
  absl::Time now;
  std::vector<std::shared_ptr<const placement::Machine>>
      machines;                                                   // of the names asked for; null: there is no such node
  placement::SummerRequest request;                               // of a summer
  std::vector<std::shared_ptr<const placement::Machine>> placed;  // of a worker: where the job's others are
};

class State {
 public:
  // `min_bits_per_second`: summers get no machine with less to spare. `clock` outlives the state.
  State(const Clock& clock, double min_bits_per_second);

  void set_node(std::shared_ptr<const placement::Node> node) ABSL_LOCKS_EXCLUDED(mutex_);
  void remove_node(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_profile(std::shared_ptr<const types::NodeProfile> profile) ABSL_LOCKS_EXCLUDED(mutex_);
  void remove_profile(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_pod(std::shared_ptr<const placement::Pod> pod) ABSL_LOCKS_EXCLUDED(mutex_);
  void remove_pod(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);

  // For this pod of ours, which waits for a node.
  Picture look(const placement::Pod& pod, const std::vector<std::string>& names) const ABSL_LOCKS_EXCLUDED(mutex_);
  // We told the scheduler that this is the best, or the only, node for this summer. Replaces what the pod was promised.
  void promise(const placement::Pod& pod, const std::string& node, double bits_per_second) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Promise {
    std::string job;
    std::string node;
    double cpus = 0;
    double bits_per_second = 0;
    absl::Duration until;  // Clock::since_start
  };
  placement::SummerRequest request_of(const placement::Pod& pod) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Clock& clock_;
  const double min_bits_per_second_;
  mutable absl::Mutex mutex_;
  placement::Fleet fleet_ ABSL_GUARDED_BY(mutex_){placement::Fleet::Taints::kIgnore};
  absl::flat_hash_map<std::string, Promise> promises_ ABSL_GUARDED_BY(mutex_);  // by the pod's key
};

}  // namespace gleaner::extender
