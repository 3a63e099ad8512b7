// Waker wakes a thread that waits for file descriptors. It is an eventfd.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace gleaner {

class Waker {
 public:
  // ResourceExhausted if no file descriptor is left.
  static absl::StatusOr<std::unique_ptr<Waker>> create();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  void wake();   // makes descriptor() readable; any thread
  void clear();  // to be called by the waiting thread before it looks for work
  int descriptor() const { return descriptor_; }

 private:
  explicit Waker(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
};

}  // namespace gleaner
