#include "comm-lib/runtime/request_table.h"

#include <algorithm>
#include <utility>

namespace gleaner::runtime {
namespace {

constexpr absl::Duration kOverdueAfter = absl::Milliseconds(500);

}  // namespace

std::optional<Request> RequestTable::add(DeclaredRequest state) {
  const uint64_t handle = state.request.handle;
  const auto tensor = tensors_.find(state.tensor.name);
  DeclaredRequest& added = requests_.emplace(handle, std::move(state)).first->second;
  if (tensor != tensors_.end()) return start(added, tensor->second);
  waiting_.push_back(handle);
  return std::nullopt;
}

std::vector<Request> RequestTable::on_plan(const plan::Plan& plan) {
  for (auto tensor = static_cast<uint32_t>(started_.size()); tensor < plan.tensors.size(); ++tensor) {
    tensors_.emplace(plan.tensors[tensor].name, tensor);
  }
  started_.resize(plan.tensors.size());
  std::vector<Request> starts;
  for (const uint64_t handle : std::exchange(waiting_, {})) {
    DeclaredRequest& state = requests_.at(handle);
    const auto tensor = tensors_.find(state.tensor.name);
    if (tensor == tensors_.end()) {
      waiting_.push_back(handle);
    } else {
      starts.push_back(start(state, tensor->second));
    }
  }
  return starts;
}

Request RequestTable::start(DeclaredRequest& state, uint32_t tensor) {
  state.request.tensor = tensor;
  state.request.step = started_[tensor]++;
  return state.request;
}

std::optional<DeclaredRequest> RequestTable::end(uint64_t handle, const absl::Status& status) {
  const auto found = requests_.find(handle);
  if (found == requests_.end()) return std::nullopt;
  std::optional<DeclaredRequest> ended = std::move(found->second);
  requests_.erase(found);
  outcomes_.push_back({handle, status});
  return ended;
}

std::vector<DeclaredRequest> RequestTable::end_all(const absl::Status& status) {
  std::vector<DeclaredRequest> ended;
  waiting_.clear();
  for (auto& [handle, state] : std::exchange(requests_, {})) {
    outcomes_.push_back({handle, status});
    ended.push_back(std::move(state));
  }
  return ended;
}

uint64_t RequestTable::started(const std::string& tensor) const {
  const auto found = tensors_.find(tensor);
  return found == tensors_.end() ? 0 : started_[found->second];
}

std::optional<control::Waiting> RequestTable::overdue(absl::Duration now) const {
  const auto oldest = std::min_element(requests_.begin(), requests_.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;  // a lower handle was opened earlier
  });
  if (oldest == requests_.end()) return std::nullopt;
  const DeclaredRequest& state = oldest->second;
  const absl::Duration elapsed = now - state.request.requested_at;
  if (elapsed < kOverdueAfter) return std::nullopt;
  return control::Waiting{state.tensor.name, state.request.step, elapsed};
}

}  // namespace gleaner::runtime
