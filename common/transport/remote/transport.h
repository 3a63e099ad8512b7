// What every transport to other processes shares: one epoll, a tick, the list of connections and their ends.
//
// A transport adds listen(), connect() and its kind of Connection. Frames leave with the next poll() or flush(), those
// that wait for one connection together. Times are kept to within 50 ms.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/descriptor.h"
#include "common/base/env.h"
#include "common/base/waker.h"
#include "common/transport/remote/connection.h"
#include "common/transport/remote/source.h"
#include "common/transport/transport.h"

namespace gleaner::transport::remote {

struct Options {
  Patience patience;                                    // with those who connect to us
  absl::Duration handshake_timeout = absl::Seconds(5);  // for those who connect to us
  size_t max_strangers = 256;  // who connected and has not done the handshake; one more closes the oldest of them
};

class Transport : public transport::Transport {
 public:
  void poll(absl::Duration timeout) final;
  void wait(absl::Duration timeout) override { wait_for_events(timeout); }
  void flush() final;
  int descriptor() const override { return epoll_.get(); }
  bool pending() const final {
    return !dirty_.empty() || !dead_.empty() || has_again_.load(std::memory_order_relaxed) || has_turn();
  }
  void wake() final { waker_->wake(); }
  absl::Status watch_beside(int descriptor, bool* readable) final;

  // What follows is for connections, and for what listens.
  Handler* handler() const { return handler_; }
  const Options& options() const { return options_; }
  const Env& env() const { return env_; }
  absl::Duration now() const { return env_.clock->since_start(); }
  BufferPool& handshake_pool() { return handshake_pool_; }
  void mark_dirty(Connection* connection);  // it has frames to write
  void bury(Connection* connection);        // it is dead: on_closed() is due
  // It has more to read than a turn allows, or something that epoll does not know of: poll() goes on with it.
  void look_again(Connection* connection);
  // `operation` and `events` as epoll_ctl(2) has them. Closing the descriptor ends it.
  absl::Status watch(int operation, int descriptor, uint32_t events, Source* source);
  // For one who connects to us: its side of the handshake, or none where that can't be, which has been logged. Closes
  // the oldest of too many strangers: who knows the secret is through in milliseconds, so it is the idlers whom a flood
  // pushes out.
  std::optional<wire::ServerHandshake> greet();
  // A connection has come up, or some are gone.
  virtual void on_connections_changed() {}

 protected:
  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);
  ~Transport() override;

  absl::Status open();  // before all else
  absl::StatusOr<wire::Nonce> draw_nonce() const;
  Connection* adopt(std::unique_ptr<Connection> connection);
  const std::vector<std::unique_ptr<Connection>>& connections() const { return connections_; }
  virtual void on_tick() {}
  // At the end of poll().
  virtual void on_polled() {}
  void wait_for_events(absl::Duration timeout);  // unless there are some that poll() has not handled
  bool has_events() const { return ready_ > 0; }
  bool looks_again() const { return !again_.empty(); }
  // For those whose work does not always show as an event. In each poll(), when events are handled; and whether there
  // is something for it to do.
  virtual void take_turn() {}
  virtual bool has_turn() const { return false; }
  // Every connection goes, without callbacks: for destructors of those whose connections need what goes with them.
  void drop_connections();

 private:
  // A descriptor that somebody else looks after.
  class Beside final : public Source {
   public:
    explicit Beside(bool* readable) : readable_(readable) {}
    void on_events(uint32_t /*events*/) override { *readable_ = true; }

   private:
    bool* const readable_;
  };

  void handle_events();
  void tick();
  void remove_dead();

  const Env env_;
  const Options options_;
  Handler* const handler_;
  const wire::JobSecrets* const jobs_;
  BufferPool handshake_pool_;  // outlives the connections
  static constexpr size_t kEventsPerPoll = 64;
  Descriptor epoll_;
  std::array<epoll_event, kEventsPerPoll> events_;
  size_t ready_ = 0;  // of events_, to be handled; connections outlive them, as they go in poll() only
  std::unique_ptr<Waker> waker_;
  Descriptor timer_;
  std::vector<std::unique_ptr<Connection>> connections_;  // in order of age
  std::vector<Connection*> dirty_;
  std::vector<Connection*> dead_;
  std::vector<Connection*> burying_;
  std::vector<Connection*> again_;
  std::atomic<bool> has_again_ = false;  // whether it holds any, for pending() while another thread is in wait()
  std::vector<Connection*> looking_;
  std::vector<std::unique_ptr<Beside>> beside_;
  absl::Duration last_tick_;
};

}  // namespace gleaner::transport::remote
