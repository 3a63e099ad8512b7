// Keeps a process's trace events while it is on.
//
// Belongs to one thread, the I/O thread. Off, an event costs a branch. On, it costs a read of the clock and 32 bytes:
// no allocation, lock or system call, since the memory for kMostEvents (8 MiB) is there from start() to take(). What
// comes when it is full is counted and dropped, so what is kept is whole up to one moment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/env.h"
#include "common/trace/event.h"

namespace gleaner::trace {

class Recorder {
 public:
  static constexpr size_t kMostEvents = size_t{1} << 18;

  // The clock outlives it.
  explicit Recorder(const Clock* clock) : clock_(*clock) {}

  bool is_on() const { return on_; }
  void start();  // from nothing, also when it was on
  void stop();   // what is recorded stays
  Recording take();
  void forget() { take(); }

  int64_t now() const { return absl::ToInt64Nanoseconds(clock_.since_start()); }

  void record(Kind kind, uint64_t step, uint32_t tensor, uint32_t partition = 0, uint32_t peer = 0,
              uint32_t bytes = 0) {
    if (on_) append({now(), step, tensor, partition, bytes, static_cast<uint16_t>(peer), kind});
  }
  // An event that the caller took the time of.
  void record(const Event& event) {
    if (on_) append(event);
  }

 private:
  void append(const Event& event) {
    if (used_ == kMostEvents) {
      ++dropped_;
    } else {
      events_[used_++] = event;
    }
  }

  const Clock& clock_;
  bool on_ = false;
  size_t used_ = 0;
  uint64_t dropped_ = 0;
  std::vector<Event> events_;  // kMostEvents while there is something to keep
};

}  // namespace gleaner::trace
