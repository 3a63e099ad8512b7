// Receiver is the receiving half of a connection: the receive slots for packets, and the order of frames.
//
// Receiver delivers frames in the order in which they were sent. The payload of a large frame arrives by WRITE, later
// than small frames that were sent after it; those wait in their slots meanwhile. Several large payloads are in flight
// at a time, each into the buffer that the user chose for it. A payload is complete once the immediate value of its
// WRITE has arrived.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/transport/rdma/domain.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/sender.h"
#include "common/transport/rdma/slot_credits.h"
#include "common/transport/rdma/stripe.h"

namespace gleaner::transport::rdma {

class Receiver {
 public:
  // Receives the frames. Each call may lead to a call of forget_user().
  class User {
   public:
    virtual ~User() = default;
    virtual absl::StatusOr<Buffer> place_payload(const wire::Header& header) = 0;
    virtual void hand_on(const wire::Header& header, Buffer payload) = 0;
    virtual absl::Duration now() const = 0;
    // Handles an item about lanes.
    virtual absl::Status on_lane_item(const PacketReader::Item& item) = 0;
  };
  static constexpr size_t kMemory = kSlots * kSlotBytes;

  // `slots`: kMemory bytes of registered memory, `slots_key` its local key. `sender` sends the grants.
  Receiver(User* user, Domain* domain, const LaneTable* lanes, SlotCredits* credits, Sender* sender, MutableBytes slots,
           uint32_t slots_key);

  // Gives all slots to the adapter. Must be called before the first packet can arrive.
  absl::Status fill(ibv_qp* pair);
  // Lets the peer offer and grant. Called when the handshake is done.
  void trust() { trusted_ = true; }
  // Stops delivery: the receiver does not call the user after that.
  void forget_user() { user_ = nullptr; }

  // Handles a packet that has arrived in the slot.
  absl::Status on_packet(uint16_t slot, size_t bytes);
  // Handles a payload that the connection's own queue pair has written, which has used up `slot`.
  absl::Status on_written(uint16_t slot, uint32_t immediate, size_t bytes);
  // Handles a payload that a lane has written.
  absl::Status on_lane_written(const Lane& lane, uint32_t immediate, size_t bytes);
  // Lets grants name this lane from now on.
  void open_path(uint16_t path, uint64_t bits_per_second) { stripe_.open(path, bits_per_second); }
  // Gives free slots back to the adapter.
  absl::Status refill(ibv_qp* pair);

  bool has_granted() const { return granted_bytes_ > 0; }  // whether the peer may write to buffers
  // Releases all buffers. May only be called once the peer can't write any more.
  void clear();

 private:
  // A frame that waits for its turn: a small frame in its slot, or a large one whose payload has been offered, granted
  // or written.
  struct Arrival {
    wire::Header header;
    ConstBytes small;  // a small frame's payload, in the slot
    Buffer payload;    // a large frame's buffer, which the user chose
    Buffer staged;     // a registered buffer into which the WRITE goes, if not into `payload`
    bool is_small = false;
    bool granted = false;
    bool complete = false;
    uint16_t number = 0;  // of the slot (small) or the offer (large)
    uint16_t lane = 0;
  };
  Arrival& at(uint64_t position) { return arrivals_[position & (arrivals_.size() - 1)]; }
  Arrival& append();
  absl::Status on_item(uint16_t slot, const PacketReader::Item& item);
  absl::Status on_frame(uint16_t slot, const PacketReader::Item& item);
  absl::Status on_offer(const PacketReader::Item& item);
  absl::Status on_whole(uint16_t lane, uint16_t number, size_t bytes);
  absl::Status hand_on_small(const wire::Header& header, ConstBytes payload);
  absl::Status hand_on_large(Arrival arrival);
  absl::Status hand_on_ready();
  absl::Status grant_more();
  absl::Status grant(Arrival& arrival);
  Domain& domain_of(size_t lane) const { return lane == 0 ? *domain_ : (*lanes_)[lane]->domain(); }
  const Region* choose_lane(const Buffer& buffer, uint16_t& lane);
  void release(uint16_t slot);

  User* user_;
  Domain* const domain_;
  const LaneTable* const lanes_;
  SlotCredits* const credits_;
  Sender* const sender_;
  const MutableBytes slots_;
  const uint32_t slots_key_;
  bool trusted_ = false;

  std::vector<Arrival> arrivals_;  // a ring whose size is a power of two
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  uint64_t next_grant_ = 0;   // all arrivals before this position are granted, or small
  size_t granted_bytes_ = 0;  // granted and not written yet
  Stripe stripe_;
  static constexpr uint64_t kNone = UINT64_MAX;
  std::array<uint64_t, kMaxOffers> offers_;  // position of each offer's arrival; kNone: no such offer

  std::array<uint16_t, kSlots> uses_{};  // per slot: number of waiting small frames in it, and 1 more while it is read
  std::array<uint16_t, kSlots> free_;
  size_t free_count_ = 0;
};

}  // namespace gleaner::transport::rdma
