#include "common/member/unplanned_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

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

control::Declare UnplannedTensors::declare(const std::vector<plan::Tensor>& tensors) {
  return {tensors, std::exchange(unsent_operations_, {})};
}

std::optional<control::Declare> UnplannedTensors::declare_all() {
  unsent_operations_.clear();
  if (tensors_.empty()) return std::nullopt;
  return control::Declare{tensors_, operations_};
}

std::optional<control::Declare> UnplannedTensors::declare_operations() {
  if (unsent_operations_.empty()) return std::nullopt;
  return declare({});
}

absl::Status UnplannedTensors::check_wait(std::optional<absl::Duration> away_since, const absl::Status& last_failure,
                                          absl::Duration now) const {
  if (tensors_.empty() || now - std::max(since_, away_since.value_or(now)) <= plan_timeout_) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      "tensor '", tensors_[0].name, "' has waited for a plan for ", absl::FormatDuration(plan_timeout_),
      ", and the coordinator at ", coordinator_,
      " is out of reach: ", last_failure.ok() ? "no answer" : last_failure.message(),
      "; start it again (in Kubernetes it is part of gleaner-operator), or set a longer time (GLEANER_PLAN_TIMEOUT)"));
}

absl::Status UnplannedTensors::check_without_coordinator(const absl::Status& last_failure) const {
  if (tensors_.empty()) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the coordinator at ", coordinator_, " is lost and can't be replaced, and no plan has tensor '",
                   tensors_[0].name, "'", last_failure.ok() ? "" : ": ", last_failure.message()));
}

bool UnplannedTensors::is_planned(const std::string& tensor) const {
  const auto found = declared_.find(tensor);
  return found == declared_.end() || found->second;
}

}  // namespace gleaner::member
