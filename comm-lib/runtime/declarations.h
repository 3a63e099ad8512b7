// The tensors this rank has declared: what user threads see of them. Thread safe; one lock per call.
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
  // The id of a tensor on this rank: dense, from 0, in order of declaration. The same name again alike: the same id.
  // InvalidArgument: declared differently before, no name, unknown type, too large.
  absl::StatusOr<uint32_t> declare(plan::Tensor tensor) ABSL_LOCKS_EXCLUDED(mutex_);

  // Marks a tensor in flight and returns what it is. InvalidArgument: no such tensor; FailedPrecondition: it is in
  // flight already.
  absl::StatusOr<plan::Tensor> begin(uint32_t id) ABSL_LOCKS_EXCLUDED(mutex_);
  void end(uint32_t id) ABSL_LOCKS_EXCLUDED(mutex_);

  // What the coordinator has to be told before a tensor's push_pull with `op` begins: tensors that it was not told of
  // yet, and `op` where this is the tensor's first. They count as told from now on.
  struct Untold {
    std::vector<plan::Tensor> tensors;
    std::vector<plan::Operation> operations;
  };
  Untold take_untold(uint32_t id, ReduceOp op) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Declared {
    plan::Tensor tensor;
    bool in_flight = false;
    bool operated = false;  // its first operation was told
  };
  absl::Mutex mutex_;
  std::vector<Declared> declared_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint32_t> ids_ ABSL_GUARDED_BY(mutex_);
  size_t told_ ABSL_GUARDED_BY(mutex_) = 0;  // of declared_, from the front
};

}  // namespace gleaner::runtime
