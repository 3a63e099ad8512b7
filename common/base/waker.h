// Makes a thread that waits for descriptors wait no longer: an eventfd.
#pragma once

#include <memory>

#include "absl/status/statusor.h"

namespace gleaner {

class Waker {
 public:
  // ResourceExhausted: no file descriptor left.
  static absl::StatusOr<std::unique_ptr<Waker>> create();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  void wake();   // any thread: descriptor() becomes readable
  void clear();  // the waiting thread, before it looks at what it was woken for
  int descriptor() const { return descriptor_; }

 private:
  explicit Waker(int descriptor) : descriptor_(descriptor) {}
  const int descriptor_;
};

}  // namespace gleaner
