// Workers holds the worker pods of a job's current attempt, by index. Pure. It refers to the pods of the Observed from
// which it was made, which must outlive it.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/observed.h"

namespace gleaner::reconcile {

class Workers {
 public:
  explicit Workers(const Observed& observed);

  const std::vector<const PodView*>& pods() const { return pods_; }  // null where there is no pod
  bool all_bound() const;                                            // every worker has a pod on a node
  bool all_running() const;                                          // every worker's pod runs or has run
  std::vector<std::string> nodes() const;                            // requires all_bound()
  absl::Time first_created() const;  // for the pods that exist; InfiniteFuture: none exists

 private:
  std::vector<const PodView*> pods_;
};

}  // namespace gleaner::reconcile
