// SocketConnection is the base of connections that own a socket and queue their frames in an Outbox. SocketTransport
// drives it.
#pragma once

#include <string>
#include <utility>

#include "common/base/descriptor.h"
#include "common/transport/stream/connection.h"
#include "common/transport/stream/outbox.h"
#include "common/transport/stream/source.h"

namespace gleaner::transport::stream {

class SocketConnection : public Connection, protected Source {
 public:
  size_t queued_bytes() const final { return outbox_.bytes(); }
  // For the transport: registers the socket with the transport's epoll.
  virtual absl::Status watch() = 0;

 protected:
  // For an accepted connection. `outbox` is empty.
  SocketConnection(Transport* transport, Descriptor socket, Outbox outbox, std::string address,
                   const wire::ServerHandshake& handshake)
      : Connection(transport, std::move(address), handshake), socket_(std::move(socket)), outbox_(std::move(outbox)) {}
  // For a connection that this side makes. Without a `socket` the derived class passes one to use_socket().
  SocketConnection(Transport* transport, Descriptor socket, Outbox outbox, std::string address,
                   const ConnectOptions& options, const wire::Nonce& nonce)
      : Connection(transport, std::move(address), options, nonce),
        socket_(std::move(socket)),
        outbox_(std::move(outbox)) {}

  const Descriptor& socket() const { return socket_; }
  void use_socket(Descriptor socket) { socket_ = std::move(socket); }  // closes the socket before
  Outbox& outbox() { return outbox_; }
  const Outbox& outbox() const { return outbox_; }

 private:
  void release_frames() final { outbox_.clear(); }

  Descriptor socket_;
  Outbox outbox_;
};

}  // namespace gleaner::transport::stream
