// LocalRank is the base of Leader and Follower: the event loop, the copies and sums, and the end of a group. Leader and
// Follower add the messages that they exchange.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm-lib/local/channel.h"
#include "comm-lib/local/group.h"
#include "comm-lib/local/layout.h"
#include "comm-lib/local/requests.h"
#include "common/base/descriptor.h"

namespace gleaner::local {

// The connection to another local rank.
struct Peer {
  explicit Peer(Descriptor socket) : channel(std::move(socket)) {}

  Channel channel;
  Descriptor process;    // pidfd, readable when the rank's process has ended
  uint32_t rank = 0;     // local rank, set with `proved`
  bool proved = false;   // used by the leader: the peer's HELLO was correct
  bool left = false;     // the peer has sent LEAVE
  bool blocked = false;  // the peer's socket is full
};

class LocalRank : public Group {
 public:
  absl::Status register_tensors(std::span<const TensorShape> tensors) final;
  absl::Status start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output,
                     const device::Access& access) final;
  void fail(const absl::Status& status) final;
  int descriptor() const final { return epoll_.get(); }
  void poll() final;
  bool has_work() const final;

 protected:
  LocalRank(const Env& env, const Options& options, const kernels::Kernels* kernels, Events* events);
  absl::Status open();  // to be called first
  // For the destructors of Leader and Follower. False: a GPU may still use the shared memory, which must stay mapped.
  bool leave();

  // Called every 10 ms until welcome().
  virtual void on_tick() = 0;
  virtual void on_readable(int descriptor) = 0;
  // Handles a message. An error means that the peer violated the protocol; on_broken() follows.
  virtual absl::Status on_message(Peer& peer, const Message& message, ConstBytes payload, Descriptor attached) = 0;
  virtual void on_broken(Peer& peer, const absl::Status& status) = 0;
  // The peer's process has ended, or its socket is closed.
  virtual void on_gone(Peer& peer) = 0;
  virtual absl::Status on_registered(Layout layout) = 0;
  // A stage of this rank's part of a push_pull has ended. Not called for kCopyingOut.
  virtual void on_stage(const Requests::Finished& finished) = 0;
  // Does a bounded part of the work other than copies and sums.
  virtual void work() = 0;
  virtual bool has_more_work() const = 0;
  virtual void flush() = 0;
  // Sends a message about sums on GPUs to the leader, which may be this rank.
  virtual void tell_leader(const Message& message, ConstBytes payload) = 0;
  // Sends a last message to all peers and closes the connections.
  virtual void close(const Message& last, ConstBytes payload) = 0;

  // Fails the group for all ranks. poll() then calls on_failed().
  void die(const absl::Status& status);
  bool dead() const { return !failure_.ok(); }

  void welcome();  // all local ranks are connected
  bool welcomed() const { return welcomed_; }
  bool overdue(absl::Duration grace) const { return env_.clock->since_start() - opened_ > options_.timeout + grace; }

  void watch(int descriptor);
  void unwatch(int descriptor);
  void watch_process_of(Peer& peer);
  // Handles received packets. `ended`: the peer's process has ended, so no further packets come.
  void receive(Peer& peer, bool ended);
  void flush(Peer& peer);
  void close(Peer& peer);

  std::string name_of(uint32_t rank) const;

  // Handles OFFER, ZONE and USE. InvalidArgument: this rank has no GPU.
  absl::Status on_zones(const Message& message, ConstBytes payload);

  const Env env_;
  const Options options_;
  Events* const events_;
  Requests requests_;
  absl::Status departed_;  // not OK: a rank has left, so no new push_pull can end

 private:
  void say_goodbye();
  void handle_ready();
  void take_copies();
  void use_gpu();
  void offer_new_zones();
  absl::Status open_zone(uint32_t batch, uint32_t owner, ConstBytes payload);
  void tell_opened(uint32_t batch, const absl::Status& status);
  void take_apart(Peer& peer, Channel::Packet& packet);
  void do_portions();

  const absl::Duration opened_;
  Descriptor epoll_;
  Descriptor timer_;
  absl::Status failure_;
  bool failure_told_ = false;
  bool watches_copies_ = false;
  bool offers_zones_ = false;
  size_t offered_ = 0;  // number of batches, from the front
  bool welcomed_ = false;
};

}  // namespace gleaner::local
