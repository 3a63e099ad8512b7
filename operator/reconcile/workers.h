// Workers holds the worker pods of a job's current attempt, by index, and which of the workers have succeeded. Pure. It
// refers to the pods of the Observation from which it was made, which must outlive it.
//
// A worker has succeeded if its pod has, or if the job's status says so: the pod of a succeeded worker may be deleted
// (by a drain or a cleaner of pods, for example). A worker whose pod is gone without such a record has not succeeded.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/observation.h"

namespace gleaner::reconcile {

class Workers {
 public:
  explicit Workers(const Observation& observation);

  const std::vector<const PodView*>& pods() const { return pods_; }  // null where there is no pod
  bool has_succeeded(uint32_t index) const { return succeeded_[index]; }
  std::vector<uint32_t> succeeded() const;  // indexes, ascending
  bool all_bound() const;                   // every worker has a pod on a node, or has succeeded
  bool all_running() const;                 // every worker's pod runs or has run
  std::vector<std::string> nodes() const;   // of the pods on nodes
  absl::Time first_created() const;         // for the pods that exist; InfiniteFuture: none exists

 private:
  std::vector<const PodView*> pods_;
  std::vector<bool> succeeded_;  // by index
};

// Returns the node of each pod; empty for a null pod, and for one on no node yet.
std::vector<std::string> nodes_of(const std::vector<const PodView*>& pods);

}  // namespace gleaner::reconcile
