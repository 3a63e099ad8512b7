// What all local ranks have in common: the loop, the work in pieces, and how it ends. Leader and Follower add who talks
// to whom.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm-lib/local/channel.h"
#include "comm-lib/local/group.h"
#include "comm-lib/local/layout.h"
#include "comm-lib/local/push_pulls.h"
#include "common/base/descriptor.h"

namespace gleaner::local {

// Another local rank, as seen from here.
struct Peer {
  explicit Peer(Descriptor socket) : channel(std::move(socket)) {}

  Channel channel;
  Descriptor process;    // readable when it has ended
  uint32_t rank = 0;     // known once it has proved itself
  bool proved = false;   // leader's view: its HELLO was right
  bool left = false;     // said LEAVE
  bool blocked = false;  // its socket is full
};

class LocalRank : public Group {
 public:
  absl::Status register_tensors(std::span<const TensorShape> tensors) final;
  absl::Status start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output) final;
  void fail(const absl::Status& status) final;
  int descriptor() const final { return epoll_.get(); }
  void poll() final;
  bool has_work() const final;

 protected:
  LocalRank(const Env& env, const Options& options, const kernels::Kernels* kernels, Events* events);
  absl::Status open();  // before all else
  void leave();         // for the destructors of Leader and Follower

  // Every few milliseconds until all are there.
  virtual void on_tick() = 0;
  virtual void on_readable(int descriptor) = 0;
  // An error: the peer broke the protocol.
  virtual absl::Status on_message(Peer& peer, const Message& message, ConstBytes payload, Descriptor attached) = 0;
  virtual void on_broken(Peer& peer, const absl::Status& status) = 0;
  virtual void on_gone(Peer& peer) = 0;
  virtual absl::Status on_registered(Layout layout) = 0;
  // A stage of this rank's own part is over; not for kCopyingOut.
  virtual void on_stage(const PushPulls::Finished& finished) = 0;
  // What there is to do beside copies and sums: a bounded part of it.
  virtual void work() = 0;
  virtual bool has_more_work() const = 0;
  virtual void flush() = 0;
  // Sends a last message to all whom this rank is connected to, and closes.
  virtual void close(const Message& last, ConstBytes payload) = 0;

  // Ends the group here and for the others; poll() tells the user.
  void die(const absl::Status& status);
  bool dead() const { return !failure_.ok(); }

  void welcome();  // all are there
  bool welcomed() const { return welcomed_; }
  bool overdue(absl::Duration grace) const { return env_.clock->since_start() - opened_ > options_.timeout + grace; }

  void watch(int descriptor);
  void unwatch(int descriptor);
  void watch_process_of(Peer& peer);
  // Handles what has come; `ended`: the peer's process has, so there is nothing beyond that.
  void receive(Peer& peer, bool ended);
  void flush(Peer& peer);
  void close(Peer& peer);

  std::string name_of(uint32_t rank) const;

  const Env env_;
  const Options options_;
  Events* const events_;
  PushPulls push_pulls_;
  absl::Status departed_;  // somebody has left in peace: why no new push_pull can end

 private:
  void handle_ready();
  void take_apart(Peer& peer, Channel::Packet& packet);
  void do_pieces();

  const absl::Duration opened_;
  Descriptor epoll_;
  Descriptor timer_;
  absl::Status failure_;
  bool failure_told_ = false;
  bool welcomed_ = false;
};

}  // namespace gleaner::local
