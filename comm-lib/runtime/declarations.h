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

  // Those that the coordinator was not told of yet; they count as told from now on.
  std::vector<plan::Tensor> take_untold() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Declared {
    plan::Tensor tensor;
    bool in_flight = false;
  };
  absl::Mutex mutex_;
  std::vector<Declared> declared_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<std::string, uint32_t> ids_ ABSL_GUARDED_BY(mutex_);
  size_t told_ ABSL_GUARDED_BY(mutex_) = 0;  // of declared_, from the front
};

}  // namespace gleaner::runtime
