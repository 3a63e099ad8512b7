// Recorder keeps the trace events of a process while it is on.
//
// It belongs to one thread, the I/O thread. While it is off, an event costs a branch. While it is on, an event costs a
// read of the clock and 40 bytes. There is no allocation, lock or system call, because the memory for kMostEvents (10
// MiB) exists from start() to take(). When that memory is full, further events are counted and dropped, so the
// recording has all events up to one moment.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/env.h"
#include "common/trace/event.h"

namespace gleaner::trace {

class Recorder {
 public:
  static constexpr size_t kMostEvents = size_t{1} << 18;

  // `clock` must outlive the recorder.
  explicit Recorder(const Clock* clock) : clock_(*clock) {}

  bool is_on() const { return on_; }
  void start();  // discards earlier events
  void stop();   // keeps the events
  // Stops, and returns and forgets the events.
  Recording take();
  void forget() { take(); }

  int64_t now() const { return absl::ToInt64Nanoseconds(clock_.since_start()); }

  void record(Kind kind, uint64_t step, uint32_t tensor, uint32_t partition = 0, uint32_t peer = 0,
              uint32_t bytes = 0) {
    if (on_) append({now(), step, tensor, partition, bytes, static_cast<uint16_t>(peer), kind});
  }
  // Records an event with its own time.
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
  std::vector<Event> events_;  // has kMostEvents elements from start() to take()
};

}  // namespace gleaner::trace
