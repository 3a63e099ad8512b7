// The sending half of a connection: frames that wait, and what the adapter has been given of them.
//
// Small frames are copied into slots, many into one, each slot a SEND. A large one is offered by its header; once the
// peer has granted a place, its payload is one WRITE from the buffer it lies in, by the lane that the grant names.
// Whatever is given to an adapter holds a slot or an offer, and the send queues have room for all of these: they can't
// overrun. Only the last of what is posted together, and one in a few before it, ask for a completion; lanes do for
// each.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/transport/rdma/credits.h"
#include "common/transport/rdma/domain.h"
#include "common/transport/rdma/lane.h"
#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {

class Sender {
 public:
  static constexpr size_t kSendSlots = 32;
  static constexpr size_t kDepth = kSendSlots + kMaxOffers;  // of the send queue
  static constexpr size_t kMemory = kSendSlots * kSlotBytes;

  // `slots`: kMemory of registered memory. `checksums`: large payloads carry theirs, too.
  Sender(Domain* domain, const LaneTable* lanes, Credits* credits, MutableBytes slots, uint32_t slots_key,
         bool checksums);

  // Queues a frame. Seals its header.
  void push(const wire::Header& header, Buffer payload);
  // Answers an offer of the peer's: it may write its payload there, by this lane. Tells of the region first, if the
  // peer does not know it.
  void grant(uint16_t offer, uint16_t lane, const Region& region, uint64_t offset);
  // The payload of the peer's offer has come by a lane.
  void tell_taken(uint16_t offer) { tell(ItemKind::kTaken, offer); }
  // Something about lanes, in a packet with others.
  template <typename Item>
  void tell(ItemKind kind, uint16_t number, const Item& item) {
    controls_.push_back({kind, number, sizeof(item), {}});
    std::memcpy(controls_.back().body.data(), &item, sizeof(item));
  }
  void tell(ItemKind kind, uint16_t number) { controls_.push_back({kind, number, 0, {}}); }

  // What the peer told; InvalidArgument: nonsense.
  absl::Status on_region(uint16_t lane, const RegionItem& region);
  absl::Status on_grant(uint16_t offer, const GrantItem& grant);
  absl::Status on_taken(uint16_t offer);

  // Gives the adapter what can leave now.
  absl::Status post(ibv_qp* pair);
  // A completion came: for this and all before it.
  void on_completed(uint64_t number);
  // A lane has written the offer's payload.
  void on_lane_completed(uint16_t offer);

  size_t queued_bytes() const { return queued_bytes_; }
  bool is_quiet() const { return posted_ == completed_; }  // the adapter has nothing of ours
  bool reads_payloads() const { return writes_ > 0; }      // the adapter may be reading buffers
  // Lets go of what the adapter has not been given. Nothing more is pushed or granted afterwards.
  void drop_waiting();
  // The adapter has nothing more to do with us: buffers are let go.
  void clear();

 private:
  struct Frame {
    wire::Header header;
    Buffer payload;
  };
  struct Offer {
    Buffer payload;
    size_t bytes = 0;  // of the frame; 0: free
    uint64_t address = 0;
    uint32_t key = 0;
    uint32_t local_key = 0;
    uint16_t lane = 0;
    bool granted = false;
    // By a lane: the number is free when both have come, and they may in any order.
    bool written = false;
    bool taken = false;
  };
  struct RemoteRegion {
    uint64_t address = 0;
    uint64_t bytes = 0;
    uint32_t key = 0;
  };
  struct Control {
    ItemKind kind;
    uint16_t number;
    size_t size;
    std::array<std::byte, 32> body;
  };

  static bool is_small(const Buffer& payload) { return payload.size() <= kMaxSmallPayload; }
  Frame& front() { return frames_[first_ & (frames_.size() - 1)]; }
  void pop();
  void grow();
  bool can_add_front(const PacketWriter& packet) const;
  void add_front(PacketWriter& packet);
  absl::Status offer_front(PacketWriter& packet);
  void add_controls(PacketWriter& packet);
  absl::Status fill(PacketWriter& packet, bool with_data);
  absl::Status add_packets();
  void add_writes();
  absl::Status write_by_lanes();
  void add_write(uint16_t number);
  absl::Status write_by_lane(uint16_t number);
  absl::Status prepare_for(Lane& lane, Offer& offer);
  void let_go(Offer& offer);
  void free_number(Offer& offer);
  ibv_send_wr& next_request(ibv_sge sge);
  absl::Status give(ibv_qp* pair);

  Domain* const domain_;
  const LaneTable* const lanes_;
  Credits* const credits_;
  const MutableBytes slots_;
  const uint32_t slots_key_;
  const bool checksums_;

  std::vector<Frame> frames_;  // a ring whose size is a power of two
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  size_t queued_bytes_ = 0;

  std::vector<Control> controls_;
  size_t controls_sent_ = 0;
  // By lane, whose regions are those of its adapter's domain; 0: our own.
  std::array<std::vector<uint64_t>, kMostLanes + 1> told_;  // by index of our region: the number that the peer knows
  std::array<std::vector<RemoteRegion>, kMostLanes + 1> remote_;

  std::array<Offer, kMaxOffers> offers_;
  size_t offers_in_use_ = 0;
  std::array<uint16_t, kMaxOffers> granted_;  // to be written
  size_t granted_count_ = 0;
  size_t writes_ = 0;  // that the adapters have

  std::array<uint16_t, kSendSlots> free_slots_;
  size_t free_slot_count_ = kSendSlots;

  // What the adapter has, in order: a slot, or kSendSlots and more: an offer.
  std::array<uint16_t, 64> in_flight_;
  static_assert(kDepth <= 64);
  uint64_t posted_ = 0;
  uint64_t completed_ = 0;

  std::array<ibv_send_wr, kDepth> requests_;
  std::array<ibv_sge, kDepth> pieces_;
  size_t request_count_ = 0;
};

}  // namespace gleaner::transport::rdma
