// Something with a descriptor that a remote::Transport waits for.
#pragma once

#include <cstdint>

namespace gleaner::transport::remote {

// Lives until the end of the poll() in which it is given up: events of the same wait may still be on their way to it.
class Source {
 public:
  virtual ~Source() = default;
  virtual void on_events(uint32_t events) = 0;  // as epoll(7) has them; from poll()
};

}  // namespace gleaner::transport::remote
