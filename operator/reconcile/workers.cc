#include "operator/reconcile/workers.h"

#include <algorithm>

#include "operator/reconcile/failure.h"
#include "operator/reconcile/names.h"

namespace gleaner::reconcile {

Workers::Workers(const Observation& observation)
    : pods_(members_of_attempt(observation, kWorker, observation.job.workers.replicas)), succeeded_(pods_.size()) {
  for (const uint32_t index : observation.job.status.succeeded_indexes) {
    if (index < succeeded_.size()) succeeded_[index] = true;
  }
  for (size_t i = 0; i < pods_.size(); ++i) {
    if (pods_[i] != nullptr && pods_[i]->phase == PodView::Phase::kSucceeded) succeeded_[i] = true;
  }
}

std::vector<uint32_t> Workers::succeeded() const {
  std::vector<uint32_t> indexes;
  for (uint32_t i = 0; i < succeeded_.size(); ++i) {
    if (succeeded_[i]) indexes.push_back(i);
  }
  return indexes;
}

bool Workers::all_bound() const {
  for (uint32_t i = 0; i < pods_.size(); ++i) {
    if (!succeeded_[i] && (pods_[i] == nullptr || pods_[i]->node.empty())) return false;
  }
  return true;
}

bool Workers::all_running() const {
  for (uint32_t i = 0; i < pods_.size(); ++i) {
    if (!succeeded_[i] && (pods_[i] == nullptr || pods_[i]->phase == PodView::Phase::kPending)) return false;
  }
  return true;
}

std::vector<std::string> Workers::nodes() const {
  std::vector<std::string> nodes;
  nodes.reserve(pods_.size());
  for (const PodView* pod : pods_) {
    if (pod != nullptr && !pod->node.empty()) nodes.push_back(pod->node);
  }
  return nodes;
}

absl::Time Workers::first_created() const {
  absl::Time first = absl::InfiniteFuture();
  for (const PodView* pod : pods_) {
    if (pod != nullptr) first = std::min(first, pod->created);
  }
  return first;
}

std::vector<std::string> nodes_of(const std::vector<const PodView*>& pods) {
  std::vector<std::string> nodes;
  nodes.reserve(pods.size());
  for (const PodView* pod : pods) nodes.push_back(pod == nullptr ? "" : pod->node);
  return nodes;
}

}  // namespace gleaner::reconcile
