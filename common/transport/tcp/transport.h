// Frames over TCP: one epoll, non-blocking sockets, many frames per system call, CRC-32C on all of them.
//
// Destroying the transport closes everything without callbacks.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/transport/remote/listener.h"
#include "common/transport/remote/transport.h"
#include "common/transport/tcp/connection.h"
#include "common/transport/transport.h"

namespace gleaner::transport::tcp {

using Options = remote::Options;

class Transport : public remote::Transport {
 public:
  // `handler` and `jobs` outlive it. `jobs` is asked at each handshake, so jobs may come and go.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const Options& options, Handler* handler,
                                                           const wire::JobSecrets* jobs);
  ~Transport() override { drop_connections(); }

  absl::StatusOr<Address> listen(const Address& address) override;  // once
  // A host name is looked up here, which may block; numeric addresses are not. All its addresses are tried in turn.
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;

  void pace(double bits_per_second) override;  // TCP's headers left out

 private:
  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);
  void accept(Descriptor socket);
  void on_connections_changed() override;
  void on_tick() override { listener_.on_tick(); }

  remote::Listener listener_;
  double pace_bits_per_second_ = 0;  // 0: no limit
};

}  // namespace gleaner::transport::tcp
