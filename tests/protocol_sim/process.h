// Process: a simulated process that can pause and crash. Events that reach a paused process wait; events that reach a
// crashed process are lost.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tests/protocol_sim/event_queue.h"

namespace gleaner::sim {

class Process {
 public:
  explicit Process(EventQueue* events) : events_(events) {}

  // Runs `what` at once, or after the pause; never after a crash.
  void run(std::function<void()> what) {
    if (dead_) return;
    if (paused_) return waiting_.push_back(std::move(what));
    what();
  }

  void pause(Nanoseconds duration) {
    if (dead_ || paused_) return;
    paused_ = true;
    events_->after(duration, [this] {
      paused_ = false;
      for (auto& what : std::exchange(waiting_, {})) run(std::move(what));
    });
  }

  void crash() {
    dead_ = true;
    waiting_.clear();
  }

  bool is_dead() const { return dead_; }
  bool is_paused() const { return paused_; }

 private:
  EventQueue* const events_;
  bool dead_ = false;
  bool paused_ = false;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace gleaner::sim
