// One end of a connection within the process.
#pragma once

#include "common/transport/transport.h"

namespace gleaner::transport::inproc {

class Transport;

class Connection : public transport::Connection {
 public:
  Connection(Transport* transport, const Peer& peer) : transport_(transport), peer_(peer) {}
  ~Connection() override;

  void send(const wire::Header& header, Buffer payload) override;
  size_t queued_bytes() const override { return 0; }
  void close(absl::Status status) override;
  const Peer& peer() const override { return peer_; }
  Capabilities capabilities() const override {
    return {.in_process = true, .one_sided = false, .checksums_payload = false};
  }

 private:
  friend class Transport;
  Transport* const transport_;
  Connection* other_ = nullptr;  // null once either end closed
  Peer peer_;
  bool closed_ = false;
};

}  // namespace gleaner::transport::inproc
