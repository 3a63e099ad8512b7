// Listener receives the events of a Client (client.h). The client's thread calls it, one event at a time.
#pragma once

#include "common/member/event.h"

namespace gleaner::member {

class Listener {
 public:
  virtual ~Listener() = default;
  virtual void on_event(const Event& event) = 0;
};

}  // namespace gleaner::member
