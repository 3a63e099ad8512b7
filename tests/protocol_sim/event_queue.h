// EventQueue: runs events in virtual time. Events run in the order of their time; events of the same time run in the
// order in which they were added.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace gleaner::sim {

using Nanoseconds = int64_t;
inline constexpr Nanoseconds kMicrosecond = 1000;
inline constexpr Nanoseconds kMillisecond = 1000 * kMicrosecond;

class EventQueue {
 public:
  Nanoseconds now() const { return now_; }
  uint64_t happened() const { return happened_; }

  void after(Nanoseconds delay, std::function<void()> event) {
    waiting_.push({now_ + delay, made_++, std::move(event)});
  }

  // Runs the next event. Returns false if there is none.
  bool step() {
    if (waiting_.empty()) return false;
    Event event = std::move(const_cast<Event&>(waiting_.top()));
    waiting_.pop();
    now_ = event.time;
    ++happened_;
    event.action();
    return true;
  }

 private:
  struct Event {
    Nanoseconds time;
    uint64_t order;
    std::function<void()> action;
    bool operator<(const Event& other) const { return time != other.time ? time > other.time : order > other.order; }
  };
  std::priority_queue<Event> waiting_;
  Nanoseconds now_ = 0;
  uint64_t made_ = 0;
  uint64_t happened_ = 0;
};

}  // namespace gleaner::sim
