// UnplannedTensors holds the tensors that a member has declared and that no committed plan has yet, with the operations
// that their first push_pulls ask for. It decides what the member declares to its coordinator, and when a tensor has
// waited for a plan for too long. Pure; belongs to one thread.
//
// A member that is admitted declares every unplanned tensor, since the coordinator may be another one. Later operations
// of such tensors are declared together, once every earlier message is written.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/control/member_messages.h"
#include "common/plan/plan.h"

namespace gleaner::member {

class UnplannedTensors {
 public:
  // `coordinator`: its address, for error messages. `plan_timeout`: as in JoinOptions.
  UnplannedTensors(std::string coordinator, absl::Duration plan_timeout)
      : coordinator_(std::move(coordinator)), plan_timeout_(plan_timeout) {}

  // Adds tensors that were not declared before, and operations of tensors that no committed plan has. (Owners compare
  // the operations of tensors that are in a plan.)
  void add(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
           absl::Duration now);
  // Removes the tensors of a plan that was committed, and their operations.
  void on_commit(const plan::Plan& plan);

  // Returns the declaration of `tensors`, which were added just now, with all operations that were not declared.
  control::Declare declare(const std::vector<plan::Tensor>& tensors);
  // Returns the declaration of all unplanned tensors and their operations, if there are any.
  std::optional<control::Declare> declare_all();
  // Returns the declaration of the operations that were not declared, if there are any.
  std::optional<control::Declare> declare_operations();

  // Returns an error if a tensor has waited for plan_timeout while the coordinator was lost. `away_since`: when it was
  // lost. `last_failure`: of the last attempt to reach it.
  absl::Status check_wait(std::optional<absl::Duration> away_since, const absl::Status& last_failure,
                          absl::Duration now) const;
  // Returns an error if there is an unplanned tensor. For a member that goes on without a coordinator.
  absl::Status check_without_coordinator(const absl::Status& last_failure) const;

 private:
  // Returns true also for a tensor that was never declared.
  bool is_planned(const std::string& tensor) const;

  const std::string coordinator_;
  const absl::Duration plan_timeout_;
  absl::flat_hash_map<std::string, bool> declared_;  // by name; true: in a committed plan
  std::vector<plan::Tensor> tensors_;                // in the order of add()
  std::vector<plan::Operation> operations_;
  std::vector<plan::Operation> unsent_operations_;  // of operations_
  absl::Duration since_;                            // since this time there has always been an unplanned tensor
};

}  // namespace gleaner::member
