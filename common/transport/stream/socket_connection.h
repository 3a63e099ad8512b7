// SocketConnection is the base of connections that own a socket and queue their frames in an Outbox. SocketTransport
// drives it.
#pragma once

#include <sys/socket.h>

#include <string>
#include <utility>

#include "common/base/descriptor.h"
#include "common/transport/stream/connection.h"
#include "common/transport/stream/outbox.h"
#include "common/transport/stream/source.h"
#include "common/transport/stream/transport.h"

namespace gleaner::transport::stream {

class SocketConnection : public Connection, protected Source {
 public:
  size_t queued_bytes() const final { return outbox_.bytes(); }
  ~SocketConnection() override { end_socket(); }

  // For the transport: registers the socket with the transport's epoll.
  virtual absl::Status watch() = 0;

 protected:
  // For an accepted connection. `outbox` is empty.
  SocketConnection(Transport* transport, Descriptor socket, Outbox outbox, std::string address,
                   const wire::ServerHandshake& handshake)
      : Connection(transport, std::move(address), handshake),
        transport_(transport),
        socket_(std::move(socket)),
        outbox_(std::move(outbox)) {}
  // For a connection that this side makes. Without a `socket` the derived class passes one to use_socket().
  SocketConnection(Transport* transport, Descriptor socket, Outbox outbox, std::string address,
                   const ConnectOptions& options, const wire::Nonce& nonce)
      : Connection(transport, std::move(address), options, nonce),
        transport_(transport),
        socket_(std::move(socket)),
        outbox_(std::move(outbox)) {}

  const Descriptor& socket() const { return socket_; }
  // Closes the socket before.
  void use_socket(Descriptor socket) {
    end_socket();
    socket_ = std::move(socket);
  }
  Outbox& outbox() { return outbox_; }
  const Outbox& outbox() const { return outbox_; }

 private:
  void release_frames() final { outbox_.clear(); }
  // Lets the peer see the end, and this side no further event, also while a forked child holds a copy of the socket.
  void end_socket() {
    if (!socket_.valid()) return;
    transport_->unwatch(socket_.get());
    ::shutdown(socket_.get(), SHUT_RDWR);
  }

  Transport* const transport_;
  Descriptor socket_;
  Outbox outbox_;
};

}  // namespace gleaner::transport::stream
