#include "common/base/waker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "common/base/limits.h"

namespace gleaner {

absl::StatusOr<std::unique_ptr<Waker>> Waker::create() {
  const int descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (descriptor < 0) return exhausted("can't make an eventfd", errno);
  return std::unique_ptr<Waker>(new Waker(descriptor));
}

Waker::~Waker() { close(descriptor_); }

void Waker::wake() {
  // EAGAIN is no error: the counter is full, and so the descriptor is readable.
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof(one));
}

void Waker::clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(descriptor_, &count, sizeof(count));
}

}  // namespace gleaner
