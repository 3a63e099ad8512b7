// Transport is the base of all transports to other processes: one epoll, a tick, the list of connections and their
// closing.
//
// A derived class adds listen(), connect() and its kind of Connection. Frames leave with the next poll() or flush();
// frames that wait for one connection leave together. Timeouts are kept to within 50 ms, the tick.
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
#include "common/transport/stream/connection.h"
#include "common/transport/stream/source.h"
#include "common/transport/transport.h"

namespace gleaner::transport::stream {

struct Options {
  KeepAlive keep_alive;                                 // of accepted connections
  absl::Duration handshake_timeout = absl::Seconds(5);  // of accepted connections
  // The limit of unauthenticated connections: accepted ones whose handshake is not done. One more closes the oldest of
  // them.
  size_t max_strangers = 256;
};

class Transport : public transport::Transport, public DescriptorWatcher {
 public:
  void poll(absl::Duration timeout) final;
  void wait(absl::Duration timeout) override { wait_for_events(timeout); }
  void flush() final;
  int descriptor() const override { return epoll_.get(); }
  bool pending() const final {
    return !dirty_.empty() || !dead_.empty() || has_scheduled_reads_.load(std::memory_order_relaxed) || has_turn();
  }
  void wake() final { waker_->wake(); }
  absl::Status watch_beside(int descriptor, bool* readable) final;
  // Must be called before a watched descriptor is closed: while a forked child holds a copy of it, epoll goes on to
  // report its events.
  void unwatch(int descriptor) final { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr); }
  Extensions extensions() override { return {.descriptor_watcher = this}; }

  // The public functions below are for connections and listeners.
  Handler* handler() const { return handler_; }
  const Options& options() const { return options_; }
  const Env& env() const { return env_; }
  absl::Duration now() const { return env_.clock->since_start(); }
  BufferPool& handshake_pool() { return handshake_pool_; }
  void mark_dirty(Connection* connection);  // the connection has frames to write
  void mark_dead(Connection* connection);   // the connection is dead: on_closed() is due
  // Makes poll() read the connection without an event: it has more to read than one turn allows, or bytes that epoll
  // does not report.
  void schedule_read(Connection* connection);
  // Adds, changes or removes a descriptor, with `operation` and `events` as in epoll_ctl(2).
  absl::Status watch(int operation, int descriptor, uint32_t events, Source* source);
  // Returns the server's side of a handshake with a new peer; nullopt if there are no random numbers, which is logged.
  // If there are too many unauthenticated connections, closes the oldest: a peer that knows the secret finishes its
  // handshake within milliseconds, so a flood of connections replaces idle ones.
  std::optional<wire::ServerHandshake> greet();
  // Called when a connection has come up, and when connections are gone.
  virtual void on_connections_changed() {}

 protected:
  Transport(const Env& env, const Options& options, Handler* handler, const wire::JobSecrets* jobs);
  ~Transport() override;

  absl::Status open();  // must be called before all other functions
  absl::StatusOr<wire::Nonce> draw_nonce() const;
  Connection* adopt(std::unique_ptr<Connection> connection);
  const std::vector<std::unique_ptr<Connection>>& connections() const { return connections_; }
  virtual void on_tick() {}
  void wait_for_events(absl::Duration timeout);  // returns without a wait if poll() has not handled the last events
  bool has_events() const { return ready_ > 0; }
  bool has_scheduled_reads() const { return !scheduled_reads_.empty(); }
  // For transports whose work does not always show as an event. Each poll() calls take_turn() after it has handled
  // events. has_turn() returns whether take_turn() has something to do.
  virtual void take_turn() {}
  virtual bool has_turn() const { return false; }
  // Destroys all connections, without callbacks. A derived class calls it in its destructor if its connections use
  // members of that class.
  void drop_connections();

 private:
  // Handles the events of a descriptor given to watch_beside().
  class ForeignSource final : public Source {
   public:
    explicit ForeignSource(bool* readable) : readable_(readable) {}
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
  // Number of elements of events_ that are still to be handled. Their connections exist, since only poll() destroys
  // connections.
  size_t ready_ = 0;
  std::unique_ptr<Waker> waker_;
  Descriptor timer_;
  std::vector<std::unique_ptr<Connection>> connections_;  // oldest first
  std::vector<Connection*> dirty_;
  std::vector<Connection*> dead_;
  std::vector<Connection*> closing_;
  std::vector<Connection*> scheduled_reads_;
  // Whether scheduled_reads_ is not empty; pending() may read this while another thread is in wait().
  std::atomic<bool> has_scheduled_reads_ = false;
  std::vector<Connection*> reading_;
  std::vector<std::unique_ptr<ForeignSource>> foreign_sources_;
  absl::Duration last_tick_;
};

}  // namespace gleaner::transport::stream
