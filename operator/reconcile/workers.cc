#include "operator/reconcile/workers.h"

#include <algorithm>

#include "operator/reconcile/failure.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {

Workers::Workers(const Observed& observed)
    : pods_(members_of_attempt(observed, kWorker, observed.job.workers.replicas)) {}

bool Workers::all_bound() const {
  return std::all_of(pods_.begin(), pods_.end(), [](const PodView* pod) { return pod && !pod->node.empty(); });
}

bool Workers::all_running() const {
  return std::all_of(pods_.begin(), pods_.end(),
                     [](const PodView* pod) { return pod && pod->phase != PodView::Phase::kPending; });
}

std::vector<std::string> Workers::nodes() const {
  std::vector<std::string> nodes;
  nodes.reserve(pods_.size());
  for (const PodView* pod : pods_) nodes.push_back(pod->node);
  return nodes;
}

absl::Time Workers::first_created() const {
  absl::Time first = absl::InfiniteFuture();
  for (const PodView* pod : pods_) {
    if (pod != nullptr) first = std::min(first, pod->created);
  }
  return first;
}

}  // namespace gleaner::reconcile
