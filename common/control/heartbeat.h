// Heartbeat says only that its sender lives. Members and the coordinator send it while they have nothing else to send.
#pragma once

namespace gleaner::control {

struct Heartbeat {
  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

}  // namespace gleaner::control
