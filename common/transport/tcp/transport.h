// Frames over TCP: one epoll, non-blocking sockets, many frames per system call, CRC-32C on all of them.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/base/waker.h"
#include "common/transport/tcp/connection.h"
#include "common/transport/tcp/socket.h"
#include "common/transport/transport.h"

namespace gleaner::transport::tcp {

struct Options {
  absl::Duration ping_after = absl::Seconds(1);         // of silence of an open connection
  absl::Duration idle_deadline = absl::Seconds(10);     // of silence, pings included: then it is closed
  absl::Duration handshake_timeout = absl::Seconds(5);  // for those who connect to us
  size_t max_strangers = 256;  // connections that have not done their handshake; more are closed at once
};

class Transport : public transport::Transport {
 public:
  // `handler` and `jobs` outlive it. `jobs` is asked at each handshake, so jobs may come and go.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const Options& options, Handler* handler,
                                                           const wire::JobSecrets* jobs);
  ~Transport() override;

  absl::StatusOr<Address> listen(const Address& address) override;
  // A host name is looked up here, which may block.
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  void poll(absl::Duration timeout) override;
  int descriptor() const override { return epoll_.descriptor(); }
  void wake() override { waker_->wake(); }

  // For connections.
  Handler* handler() const { return handler_; }
  const Options& options() const { return options_; }
  BufferPool& handshake_pool() { return handshake_pool_; }
  void mark_dirty(Connection* connection);
  void bury(Connection* connection);

 private:
  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);
  absl::Duration now() const { return env_.clock->since_start(); }
  Connection* adopt(std::unique_ptr<Connection> connection);
  void accept_all();
  size_t strangers() const;
  void arm(Connection& connection);
  void flush_dirty();
  void check_times();
  void remove_dead();

  const Env env_;
  const Options options_;
  Handler* const handler_;
  const wire::JobSecrets* const jobs_;
  BufferPool handshake_pool_;  // outlives the connections
  Socket epoll_;
  std::unique_ptr<Waker> waker_;
  Socket listener_;
  bool accept_failed_ = false;  // logged once
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection*> dirty_;
  std::vector<Connection*> dead_;
  absl::Duration last_check_;
};

}  // namespace gleaner::transport::tcp
