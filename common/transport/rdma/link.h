// One reliable connection of an adapter's: its queue pair, completions, and both halves of the traffic; and its lanes,
// if it has any over other ports.
//
// Buffers that an adapter reads, or that the peer may write to, are let go only after all queue pairs are destroyed,
// those of the lanes, too: nothing of a connection can reach a buffer that has gone back to its pool.
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
  // The completion queue's context is the Link. ResourceExhausted: the system or adapter has no more of something.
  static absl::StatusOr<std::unique_ptr<Link>> create(std::shared_ptr<Domain> domain, ibv_comp_channel* channel,
                                                      Receiver::User* user, bool checksums);
  ~Link();

  uint32_t number() const { return pair_->qp_num; }
  Domain& domain() { return *domain_; }

  // Takes what the connection manager found out about the way to the peer. Payloads can't be written here yet.
  absl::Status make_ready(rdma_cm_id* id);
  // The peer is proven: it may write where it is granted to.
  absl::Status trust();
  // A further path for payloads, which is ready. The peer may name it in grants at once; we do from open_path() on.
  void add_lane(std::unique_ptr<Lane> lane);
  // Payloads may be asked for by this lane from now on, and are reckoned to come with that rate. None is asked for by
  // the link itself any more.
  void open_path(uint16_t lane, uint64_t bits_per_second) { receiver_.open_path(lane, bits_per_second); }
  const LaneTable& lanes() const { return lanes_; }
  // By which path the peer could not be reached any more, when read() failed: a lane, or 0; -1: that was not it.
  int failed_path() const { return failed_path_; }
  // For what is told about lanes.
  Sender& sender() { return sender_; }

  void push(const wire::Header& header, Buffer payload) { sender_.push(header, std::move(payload)); }
  size_t queued_bytes() const { return sender_.queued_bytes(); }
  absl::Status write();

  // Takes completions, one turn's worth. True: there may be more.
  absl::StatusOr<bool> read();
  // Whether something has come that read() will take; for spinning.
  bool peek();
  // The next completion makes the channel readable. What came before may have to be looked for once more.
  absl::Status arm();
  // Since the last call: something came; anything was taken.
  bool heard() { return std::exchange(heard_, false); }
  bool was_busy() { return std::exchange(busy_, false); }

  // The user is gone: nothing is handed on, and what has not left stays.
  void forget_user();
  // Whether what has been sent is with the peer.
  bool is_quiet() const;
  // Whether nothing but our own slots is in the adapter's or the peer's hands.
  bool holds_no_buffers() const { return !sender_.reads_payloads() && !receiver_.has_granted(); }
  // Ends all traffic, then lets go of buffers. Idempotent.
  void end();
  bool has_ended() const { return pair_ == nullptr; }

  // For whoever has the link.
  Connection* connection = nullptr;  // null: it lingers
  bool awake = false;                // its completions are looked for without events

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
  Credits credits_;
  Sender sender_;
  Receiver receiver_;
  std::array<ibv_wc, kCompletionsAtOnce> taken_;
  int taken_count_ = 0;  // that peek() took and read() has not seen
  bool heard_ = false;
  bool busy_ = false;
};

}  // namespace gleaner::transport::rdma
