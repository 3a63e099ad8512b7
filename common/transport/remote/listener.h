// A socket that accepts, of any family.
#pragma once

#include <functional>

#include "common/base/descriptor.h"
#include "common/transport/remote/source.h"
#include "common/transport/remote/transport.h"

namespace gleaner::transport::remote {

// Without a descriptor left it says so once, and is deaf until the next tick, so that poll() does not spin.
class Listener : public Source {
 public:
  using Accept = std::function<void(Descriptor)>;  // a connection, non-blocking

  Listener(Transport* transport, Accept accept) : transport_(transport), accept_(std::move(accept)) {}
  absl::Status open(Descriptor socket);  // that listens
  bool is_open() const { return socket_.valid(); }
  int descriptor() const { return socket_.get(); }
  void on_tick();

 private:
  void on_events(uint32_t events) override;

  Transport* const transport_;
  const Accept accept_;
  Descriptor socket_;
  bool deaf_ = false;
  bool failed_ = false;  // logged, until it works again
};

}  // namespace gleaner::transport::remote
