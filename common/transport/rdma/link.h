// Link is a reliable connection of an adapter. It owns a queue pair, a completion queue, a Sender, a Receiver, and the
// connection's lanes, if any.
//
// end() first destroys all queue pairs, those of lanes included. Then it releases the buffers that the adapter reads or
// the peer may write to. So no payload arrives in a buffer that has returned to its pool.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "common/transport/rdma/receiver.h"
#include "common/transport/rdma/sender.h"
#include "common/transport/rdma/verbs.h"

namespace gleaner::transport::rdma {

class Connection;

class Link {
 public:
  // The context of the completion queue is the Link. ResourceExhausted: the system or the adapter has run out of
  // objects or memory.
  static absl::StatusOr<std::unique_ptr<Link>> create(std::shared_ptr<Domain> domain, ibv_comp_channel* channel,
                                                      Receiver::User* user, bool checksums);
  ~Link();

  uint32_t number() const { return pair_->qp_num; }  // of the queue pair
  Domain& domain() { return *domain_; }

  // Makes the queue pair ready to send and to receive packets, with the connection manager's data about the path to the
  // peer. The peer can't write payloads yet.
  absl::Status make_ready(rdma_cm_id* id);
  // Lets the peer write payloads to the places that this side grants. Called when the handshake is done.
  absl::Status trust();
  // Adds a lane. The peer may name it in grants from then on; this side does so from open_path() on.
  void add_lane(std::unique_ptr<Lane> lane);
  // Lets this side's grants name the lane, and assumes this bandwidth for it. From then on grants name the link itself
  // only for buffers that the chosen lane's adapter can't register.
  void open_path(uint16_t lane, uint64_t bits_per_second) { receiver_.open_path(lane, bits_per_second); }
  const LaneTable& lanes() const { return lanes_; }
  // Returns the path by which the peer could not be reached, after read() has failed: a lane's number, or 0, the link
  // itself. -1: read() has failed for another reason.
  int failed_path() const { return failed_path_; }
  // Returns the sender, for messages about lanes.
  Sender& sender() { return sender_; }

  void push(const wire::Header& header, Buffer payload) { sender_.push(header, std::move(payload)); }
  size_t queued_bytes() const { return sender_.queued_bytes(); }
  absl::Status write();

  // Handles completions, at most one turn's worth. Returns true if there may be more.
  absl::StatusOr<bool> read();
  // Returns whether read() has something to handle.
  bool peek();
  // Lets the next completion signal the channel. Earlier completions do not, so the caller calls peek() once more.
  absl::Status arm();
  // heard() returns whether the peer has sent something since the last call of heard(). was_busy() returns whether any
  // completion has arrived since the last call of was_busy().
  bool heard() { return std::exchange(heard_, false); }
  bool was_busy() { return std::exchange(busy_, false); }

  // Detaches the user: the link delivers no more frames, and drops frames that it has not given to an adapter.
  void forget_user();
  // Returns whether the peer's adapters have acknowledged all messages.
  bool is_quiet() const;
  // Returns whether neither the adapters nor the peer access any buffers; slots do not count.
  bool holds_no_buffers() const { return !sender_.reads_payloads() && !receiver_.has_granted(); }
  // Destroys the queue pairs, then releases the buffers. Idempotent.
  void end();
  bool has_ended() const { return pair_ == nullptr; }

  // Set by the link's owner.
  Connection* connection = nullptr;  // null: the connection is closed, and the link lingers
  bool awake = false;                // the transport looks for completions without an event

 private:
  struct Slots {
    std::unique_ptr<std::byte[], void (*)(void*)> memory;
    MemoryRegion region;
  };
  Link(std::shared_ptr<Domain> domain, Slots slots, Receiver::User* user, bool checksums);
  absl::Status open(ibv_comp_channel* channel);
  absl::StatusOr<bool> read_own();
  absl::StatusOr<bool> read_lanes();
  absl::Status read_lane(Lane& lane, std::span<const ibv_wc> completions);
  absl::Status on_completion(const ibv_wc& completion);
  int take_completions();

  static constexpr int kCompletionsAtOnce = 32;
  const std::shared_ptr<Domain> domain_;
  const Slots slots_;
  CompletionQueue queue_;
  QueuePair pair_;
  LaneTable lanes_;
  int failed_path_ = -1;
  SlotCredits credits_;
  Sender sender_;
  Receiver receiver_;
  std::array<ibv_wc, kCompletionsAtOnce> taken_;
  int taken_count_ = 0;  // completions that peek() took and read() has not handled
  bool heard_ = false;
  bool busy_ = false;
};

}  // namespace gleaner::transport::rdma
