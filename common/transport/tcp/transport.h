// Transport moves frames over TCP: one epoll, non-blocking sockets, many frames per system call, CRC-32C over headers
// and payloads.
//
// Destroying the transport closes all connections without callbacks.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/transport/stream/socket_transport.h"
#include "common/transport/tcp/connection.h"
#include "common/transport/transport.h"

namespace gleaner::transport::tcp {

using Options = stream::Options;

class Transport : public stream::SocketTransport, public Pacer {
 public:
  // `handler` and `jobs` must outlive the transport. Each handshake looks its job up in `jobs`, so jobs may come and
  // go.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const Options& options, Handler* handler,
                                                           const wire::JobSecrets* jobs);
  ~Transport() override { drop_connections(); }

  // Looks up the host's name, which may block; a numeric address never blocks. Tries all addresses of the host in turn.
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;

  void pace(double bits_per_second) override;  // does not count TCP's headers
  Extensions extensions() override {
    Extensions all = stream::SocketTransport::extensions();
    all.pacer = this;
    return all;
  }

 private:
  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);
  absl::StatusOr<Bound> bind(const Address& address) override;
  std::unique_ptr<stream::SocketConnection> accepted(Descriptor socket,
                                                     const wire::ServerHandshake& handshake) override;
  void on_connections_changed() override;

  double pace_bits_per_second_ = 0;  // 0: no limit
};

}  // namespace gleaner::transport::tcp
