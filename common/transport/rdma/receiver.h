// The receiving half of a connection: slots for packets, and the order of frames.
//
// Frames are handed on in the order they were sent in, though payloads of large ones come by WRITE after what was sent
// behind them: small frames then wait in their slots. Several large ones are on their way at a time, each into the
// buffer that the user gave for it, and are handed on when their WRITE's immediate value has come: the payload is whole
// then.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/transport/rdma/credits.h"
#include "common/transport/rdma/domain.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/sender.h"
#include "common/transport/rdma/stripe.h"

namespace gleaner::transport::rdma {

// Whom frames are handed to; each call may end the receiver's use of it (forget_user()).
class Receiver {
 public:
  class User {
   public:
    virtual ~User() = default;
    virtual absl::StatusOr<Buffer> place_payload(const wire::Header& header) = 0;
    virtual void hand_on(const wire::Header& header, Buffer payload) = 0;
    virtual absl::Duration now() const = 0;
    // Something was told about lanes.
    virtual absl::Status on_lane_item(const PacketReader::Item& item) = 0;
  };
  static constexpr size_t kMemory = kSlots * kSlotBytes;

  // `slots`: kMemory of registered memory. `sender` takes grants.
  Receiver(User* user, Domain* domain, const LaneTable* lanes, Credits* credits, Sender* sender, MutableBytes slots,
           uint32_t slots_key);

  // All slots, before the first packet can come.
  absl::Status fill(ibv_qp* pair);
  // The peer is proven: it may offer and grant.
  void trust() { trusted_ = true; }
  // Nothing is handed on from now on.
  void forget_user() { user_ = nullptr; }

  // A packet is in the slot.
  absl::Status on_packet(uint16_t slot, size_t bytes);
  // The payload of an offer has been written; `slot` has been used up for that.
  absl::Status on_written(uint16_t slot, uint32_t immediate, size_t bytes);
  // The payload of an offer has been written by this lane.
  absl::Status on_lane_written(const Lane& lane, uint32_t immediate, size_t bytes);
  // From now on payloads may come by this lane.
  void open_path(uint16_t path, uint64_t bits_per_second) { stripe_.open(path, bits_per_second); }
  // Gives the adapter the slots that are free again.
  absl::Status refill(ibv_qp* pair);

  bool has_granted() const { return granted_bytes_ > 0; }  // the peer may write to buffers
  // The peer can't write to us any more: buffers are let go.
  void clear();

 private:
  // A frame that waits for its turn: a small one in its slot, or a large one whose payload is offered, granted or
  // there.
  struct Arrival {
    wire::Header header;
    ConstBytes small;  // payload, in the slot
    Buffer payload;    // what the user gave for it
    Buffer staged;     // where the WRITE goes, if not there
    bool is_small = false;
    bool granted = false;
    bool complete = false;
    uint16_t number = 0;  // slot or offer
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
  Credits* const credits_;
  Sender* const sender_;
  const MutableBytes slots_;
  const uint32_t slots_key_;
  bool trusted_ = false;

  std::vector<Arrival> arrivals_;  // a ring whose size is a power of two
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  uint64_t next_grant_ = 0;  // all before it are granted, or small
  size_t granted_bytes_ = 0;
  Stripe stripe_;
  static constexpr uint64_t kNone = UINT64_MAX;
  std::array<uint64_t, kMaxOffers> offers_;  // where each is in the ring

  std::array<uint16_t, kSlots> uses_{};  // of each slot: small frames in it that wait, and its being read
  std::array<uint16_t, kSlots> free_;
  size_t free_count_ = 0;
};

}  // namespace gleaner::transport::rdma
