// Source handles the events of a descriptor that a stream::Transport waits for.
#pragma once

#include <cstdint>

namespace gleaner::transport::stream {

// Must live until the end of the poll() in which its descriptor is removed: that poll() may still hold events for it.
class Source {
 public:
  virtual ~Source() = default;
  virtual void on_events(uint32_t events) = 0;  // epoll(7)'s bits; called from poll()
};

}  // namespace gleaner::transport::stream
