// State is the extender's view of the cluster, shared by concurrent calls, and its recent promises.
//
// Feeds updates it from watches of nodes, profiles and pods. A call takes a Snapshot: immutable machines, looked up
// under a reader lock. The cost depends on the number of requested names, not on the size of the cluster.
//
// A *promise* covers the time between kube-scheduler's choice of a node and the moment when the watch shows the pod as
// bound. In that time the node with the extender's best score counts as taken by the summer, so that two summers that
// are scheduled at the same moment are not both placed on it. A promise ends when the pod is bound or gone, or after
// kPromiseLife.
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
#include "common/placement/fleet.h"
#include "common/placement/placement.h"

namespace gleaner::extender {

inline constexpr absl::Duration kPromiseLife = absl::Seconds(30);

// The part of the State that one call needs.
struct Snapshot {
  bool known = false;  // false: no NodeProfile exists, so no node can be judged
  absl::Time now;
  std::vector<std::shared_ptr<const placement::Machine>> machines;  // one for each requested name; null: no such node
  placement::SummerRequest request;                                 // for a summer
  std::vector<std::shared_ptr<const placement::Machine>> placed;  // for a worker: machines of the job's placed workers
};

class State {
 public:
  // Machines with less spare bandwidth than `min_bits_per_second` get no summer. `clock` must outlive the State.
  State(const Clock& clock, double min_bits_per_second);

  void set_node(std::shared_ptr<const placement::Node> node) ABSL_LOCKS_EXCLUDED(mutex_);
  void remove_node(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_profile(std::shared_ptr<const api::NodeProfile> profile) ABSL_LOCKS_EXCLUDED(mutex_);
  void remove_profile(absl::string_view name) ABSL_LOCKS_EXCLUDED(mutex_);
  void set_pod(std::shared_ptr<const placement::Pod> pod) ABSL_LOCKS_EXCLUDED(mutex_);
  void remove_pod(absl::string_view key) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the snapshot for a worker or summer that waits for a node.
  Snapshot take_snapshot(const placement::Pod& pod, const std::vector<std::string>& names) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that the extender named this node to kube-scheduler as the best, or only, node for this summer. Replaces an
  // earlier promise for the pod.
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
  absl::flat_hash_map<std::string, Promise> promises_ ABSL_GUARDED_BY(mutex_);  // by key of the pod
};

}  // namespace gleaner::extender
