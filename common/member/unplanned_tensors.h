// UnplannedTensors holds the tensors that a member has declared and that no committed plan has yet, with the operations
// that their first push_pulls ask for. The member sends all of them to a coordinator that admits it. Pure; belongs to
// one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"

namespace gleaner::member {

class UnplannedTensors {
 public:
  // Adds tensors that were not declared before, and operations of tensors that no committed plan has. (Owners compare
  // the operations of tensors that are in a plan.)
  void add(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
           absl::Duration now);
  // Removes the tensors of a plan that was committed, and their operations.
  void on_commit(const plan::Plan& plan);

  bool empty() const { return tensors_.empty(); }
  const std::vector<plan::Tensor>& tensors() const { return tensors_; }  // in the order of add()
  const std::vector<plan::Operation>& operations() const { return operations_; }
  // Returns the time of the add() since which there has always been an unplanned tensor.
  absl::Duration since() const { return since_; }
  // Returns the operations that earlier calls have not returned.
  std::vector<plan::Operation> take_unsent_operations();

 private:
  // Returns true also for a tensor that was never declared.
  bool is_planned(const std::string& tensor) const;

  absl::flat_hash_map<std::string, bool> declared_;  // by name; true: in a committed plan
  std::vector<plan::Tensor> tensors_;
  std::vector<plan::Operation> operations_;
  std::vector<plan::Operation> unsent_operations_;
  absl::Duration since_;
};

}  // namespace gleaner::member
