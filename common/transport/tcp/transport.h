// Frames over TCP: one epoll, non-blocking sockets, many frames per system call, CRC-32C on all of them.
//
// Frames leave with the next poll() or flush(), those that wait for one connection together. Destroying the transport
// closes everything without callbacks. Times are kept to within 50 ms.
#pragma once

#include <sys/epoll.h>

#include <array>
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
  Patience patience;                                    // with those who connect to us
  absl::Duration handshake_timeout = absl::Seconds(5);  // for those who connect to us
  size_t max_strangers = 256;  // who connected and has not done the handshake; one more closes the oldest of them
};

class Transport : public transport::Transport {
 public:
  // `handler` and `jobs` outlive it. `jobs` is asked at each handshake, so jobs may come and go.
  static absl::StatusOr<std::unique_ptr<Transport>> create(const Env& env, const Options& options, Handler* handler,
                                                           const wire::JobSecrets* jobs);
  ~Transport() override;

  absl::StatusOr<Address> listen(const Address& address) override;  // once
  // A host name is looked up here, which may block; numeric addresses are not. All its addresses are tried in turn.
  absl::StatusOr<transport::Connection*> connect(const Address& address, const ConnectOptions& options) override;
  void poll(absl::Duration timeout) override;
  void wait(absl::Duration timeout) override;
  void flush() override;
  int descriptor() const override { return epoll_.descriptor(); }
  bool pending() const override { return !dirty_.empty() || !dead_.empty(); }
  void wake() override { waker_->wake(); }

  void pace(double bits_per_second) override;  // TCP's headers left out

  // What follows is for connections.
  Handler* handler() const { return handler_; }
  const Options& options() const { return options_; }
  BufferPool& handshake_pool() { return handshake_pool_; }
  void mark_dirty(Connection* connection);   // it has frames to write
  void bury(Connection* connection);         // it is dead: on_closed() is due
  void share_pace();                         // one has come up
  void watch_again(Connection& connection);  // it has another socket

 private:
  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);
  absl::Duration now() const { return env_.clock->since_start(); }
  absl::Status open();
  Connection* adopt(std::unique_ptr<Connection> connection);
  void accept_some();
  void accept(Socket socket);
  void make_room_for_stranger();
  void listen_again();
  void handle(void* tag, uint32_t events);
  void arm(Connection& connection);
  void on_tick();
  void remove_dead();

  const Env env_;
  const Options options_;
  Handler* const handler_;
  const wire::JobSecrets* const jobs_;
  BufferPool handshake_pool_;  // outlives the connections
  static constexpr size_t kEventsPerPoll = 64;
  Socket epoll_;
  std::array<epoll_event, kEventsPerPoll> events_;
  size_t ready_ = 0;  // of events_, to be handled; connections outlive them, as they go in poll() only
  std::unique_ptr<Waker> waker_;
  Socket timer_;
  Socket listener_;
  double pace_bits_per_second_ = 0;                       // 0: no limit
  bool accepting_ = true;                                 // false: no descriptors were left, until the next tick
  bool accept_failed_ = false;                            // logged once, until it works again
  std::vector<std::unique_ptr<Connection>> connections_;  // in order of age
  std::vector<Connection*> dirty_;
  std::vector<Connection*> dead_;
  std::vector<Connection*> burying_;
  absl::Duration last_tick_;
};

}  // namespace gleaner::transport::tcp
