#include "common/member/unplanned_tensors.h"

#include <utility>

namespace gleaner::member {

void UnplannedTensors::add(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
                           absl::Duration now) {
  if (tensors_.empty()) since_ = now;
  for (const plan::Tensor& tensor : tensors) {
    if (declared_.try_emplace(tensor.name, false).second) tensors_.push_back(tensor);
  }
  for (const plan::Operation& each : operations) {
    if (is_planned(each.tensor)) continue;
    operations_.push_back(each);
    unsent_operations_.push_back(each);
  }
}

void UnplannedTensors::on_commit(const plan::Plan& plan) {
  for (const plan::Tensor& tensor : plan.tensors) {
    if (const auto found = declared_.find(tensor.name); found != declared_.end()) found->second = true;
  }
  std::erase_if(tensors_, [this](const plan::Tensor& tensor) { return is_planned(tensor.name); });
  std::erase_if(operations_, [this](const plan::Operation& each) { return is_planned(each.tensor); });
  std::erase_if(unsent_operations_, [this](const plan::Operation& each) { return is_planned(each.tensor); });
}

std::vector<plan::Operation> UnplannedTensors::take_unsent_operations() {
  return std::exchange(unsent_operations_, {});
}

bool UnplannedTensors::is_planned(const std::string& tensor) const {
  const auto found = declared_.find(tensor);
  return found == declared_.end() || found->second;
}

}  // namespace gleaner::member
