// Declarations holds the tensors that this rank has declared, as user threads see them. Thread safe; one lock per call.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/plan/plan.h"

namespace gleaner::runtime {

class Declarations {
 public:
  // Returns the tensor's id on this rank: ids count from 0, in the order of declaration. A repeated declaration of a
  // name with the same contents returns the same id. InvalidArgument: the name was declared with other contents, or the
  // name, the type or the size is not allowed.
  absl::StatusOr<uint32_t> declare(plan::Tensor tensor) ABSL_LOCKS_EXCLUDED(mutex_);

  // Marks a tensor as in flight and returns it; end() removes the mark. InvalidArgument: there is no such tensor.
  // FailedPrecondition: the tensor is in flight already.
  absl::StatusOr<plan::Tensor> begin(uint32_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void end(uint32_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // Declarations that the coordinator needs before a request of a tensor with `op` begins: the tensors that were not
  // sent yet, and `op` if this is the tensor's first request. The caller sends them; both count as sent from then on.
  struct Unsent {
    std::vector<plan::Tensor> tensors;
    std::vector<plan::Operation> operations;
  };
  Unsent take_unsent(uint32_t id, ReduceOp op) ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns the name of a tensor. InvalidArgument: there is no such tensor.
  absl::StatusOr<std::string> name_of(uint32_t id) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Returns whether a tensor that accumulates was declared.
  bool any_accumulates() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Declared {
    plan::Tensor tensor;
    bool in_flight = false;
    bool operation_sent = false;
  };
  mutable absl::Mutex mutex_;
  std::vector<Declared> declared_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint32_t> ids_ ABSL_GUARDED_BY(mutex_);
  size_t sent_ ABSL_GUARDED_BY(mutex_) = 0;  // number of elements of declared_, from the front, that were sent
  bool any_accumulates_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace gleaner::runtime
