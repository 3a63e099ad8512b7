// SocketTransport is the base of transports that accept connections on one socket that listens.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/transport/stream/listener.h"
#include "common/transport/stream/socket_connection.h"
#include "common/transport/stream/transport.h"

namespace gleaner::transport::stream {

class SocketTransport : public Transport {
 public:
  // May be called once. Errors: as bind().
  absl::StatusOr<Address> listen(const Address& address) final;

 protected:
  // A socket that listens, and the address at which peers reach it.
  struct Bound {
    Descriptor socket;
    Address address;
  };

  SocketTransport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);

  // Implemented by each transport.
  virtual absl::StatusOr<Bound> bind(const Address& address) = 0;
  // Returns a connection over `socket`, which a peer has connected to.
  virtual std::unique_ptr<SocketConnection> accepted(Descriptor socket, const wire::ServerHandshake& handshake) = 0;

 private:
  void accept(Descriptor socket);
  void on_tick() final { listener_.on_tick(); }

  Listener listener_;
};

}  // namespace gleaner::transport::stream
