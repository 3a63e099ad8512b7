// Listener accepts connections on a socket of any address family.
#pragma once

#include <functional>

#include "common/base/descriptor.h"
#include "common/transport/stream/source.h"
#include "common/transport/stream/transport.h"

namespace gleaner::transport::stream {

// When accept() fails, for example because the process is out of descriptors, the listener logs one error and stops
// accepting until the next tick, so that poll() does not spin.
class Listener : public Source {
 public:
  using Accept = std::function<void(Descriptor)>;  // gets the non-blocking socket of a connection

  Listener(Transport* transport, Accept accept) : transport_(transport), accept_(std::move(accept)) {}
  absl::Status open(Descriptor socket);  // needs a socket that listens
  bool is_open() const { return socket_.valid(); }
  int descriptor() const { return socket_.get(); }
  void on_tick();

 private:
  void on_events(uint32_t events) override;

  Transport* const transport_;
  const Accept accept_;
  Descriptor socket_;
  bool paused_ = false;  // the listener does not accept until the next tick
  bool failed_ = false;  // the listener has logged an error since it last accepted
};

}  // namespace gleaner::transport::stream
