// Connection is one end of a connection within the process.
#pragma once

#include "common/transport/transport.h"

namespace gleaner::transport::inproc {

class Transport;

class Connection : public transport::Connection {
 public:
  Connection(Transport* transport, const Peer& peer) : transport_(transport), peer_(peer) {}
  ~Connection() override;

  void send(const wire::Header& header, Buffer payload) override;
  size_t queued_bytes() const override { return queued_bytes_; }
  bool all_arrived() const override { return up_ && queued_bytes_ == 0; }
  void close(absl::Status status) override;
  const Peer& peer() const override { return peer_; }
  Kind kind() const override { return Kind::kInproc; }
  Capabilities capabilities() const override {
    return {.in_process = true, .one_sided = false, .checksums_payload = false};
  }

 private:
  friend class Transport;
  // Records that the other end has handled a frame of this end, with this many bytes.
  void taken(size_t bytes) { queued_bytes_ -= bytes; }
  // Separates the two ends. The other end gets on_closed() after the frames that are on their way to it.
  void part(absl::Status status);

  Transport* const transport_;
  Connection* other_ = nullptr;  // null once either end has closed
  const Peer peer_;
  size_t queued_bytes_ = 0;
  bool up_ = false;      // on_connected() has been called
  bool closed_ = false;  // close() was called, or the other end has closed; on_closed() is due
};

}  // namespace gleaner::transport::inproc
