// Sender is the sending half of a connection: frames that wait, and frames that an adapter has.
//
// Small frames are copied into send slots, many into one, and each slot is sent by one SEND. A large frame is offered
// by its header. Once the peer has granted a place for the payload, one WRITE sends it from its own buffer, by the lane
// that the grant names.
//
// Every work request holds a slot or an offer, and the send queues have room for all slots and offers, so they can't
// overrun. On lanes each work request asks for a completion.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/transport/rdma/domain.h"
#include "common/transport/rdma/frame_queue.h"
#include "common/transport/rdma/item_queue.h"
#include "common/transport/rdma/lane.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/remote_regions.h"
#include "common/transport/rdma/slot_credits.h"
#include "common/transport/rdma/work_requests.h"

namespace gleaner::transport::rdma {

class Sender {
 public:
  static constexpr size_t kSendSlots = 32;
  static constexpr size_t kDepth = kSendSlots + kMaxOffers;  // of the send queue
  static constexpr size_t kMemory = kSendSlots * kSlotBytes;

  // `slots`: kMemory bytes of registered memory, `slots_key` its local key. `checksums`: whether large payloads have a
  // checksum, too.
  Sender(Domain* domain, const LaneTable* lanes, SlotCredits* credits, MutableBytes slots, uint32_t slots_key,
         bool checksums);

  // Queues a frame and seals its header.
  void push(const wire::Header& header, Buffer payload);
  // Answers an offer of the peer, which may write the payload into `region` at `offset`, by `lane`. Announces the
  // region to the peer first, unless the peer knows it.
  void grant(uint16_t offer, uint16_t lane, const Region& region, uint64_t offset);
  // Returns the items that wait for the next packets; callers may add some.
  ItemQueue& items() { return items_; }

  // Handle items from the peer. InvalidArgument: the item is invalid.
  absl::Status on_region(uint16_t lane, const RegionItem& region) { return remote_regions_.add(lane, region); }
  absl::Status on_grant(uint16_t offer, const GrantItem& grant);
  absl::Status on_taken(uint16_t offer);

  // Posts the work requests that can be posted now.
  absl::Status post(ibv_qp* pair);
  // Handles the completion of a work request, which completes all earlier ones as well.
  void on_completed(uint64_t number);
  // Handles the completion of a WRITE by a lane.
  void on_lane_completed(uint16_t offer);

  size_t queued_bytes() const { return queued_bytes_; }
  bool is_quiet() const { return requests_.all_completed(); }  // the adapter has no work requests
  bool reads_payloads() const { return writes_ > 0; }          // the adapter may be reading buffers
  // Releases the payloads that no adapter has. push() and grant() must not be called afterwards.
  void drop_waiting();
  // Releases all buffers. May only be called once the adapters have no work requests.
  void clear();

 private:
  struct OfferedFrame {
    Buffer payload;
    size_t bytes = 0;              // of the frame; 0: the number is free
    RemoteRegions::Target target;  // the place that the peer granted
    uint32_t local_key = 0;
    uint16_t lane = 0;
    bool granted = false;
    // For a payload that goes by a lane: the number is free again once both are true; either may come first.
    bool written = false;
    bool taken = false;
  };
  static bool is_small(const Buffer& payload) { return payload.size() <= kMaxSmallPayload; }
  bool can_add_front(const PacketWriter& packet) const;
  void add_front(PacketWriter& packet);
  absl::Status offer_front(PacketWriter& packet);
  absl::Status fill(PacketWriter& packet, bool with_data);
  absl::Status add_packets();
  void add_writes();
  absl::Status write_by_lanes();
  void add_write(uint16_t number);
  absl::Status write_by_lane(uint16_t number);
  absl::Status prepare_for(Lane& lane, OfferedFrame& offer);
  void release_payload(OfferedFrame& offer);
  void free_number(OfferedFrame& offer);

  Domain* const domain_;
  const LaneTable* const lanes_;
  SlotCredits* const credits_;
  const MutableBytes slots_;
  const uint32_t slots_key_;
  const bool checksums_;

  FrameQueue frames_;
  size_t queued_bytes_ = 0;
  ItemQueue items_{size_t{4} * kMaxOffers};
  // By lane (0: the link) and index of this side's region: number() of the region with this index that the peer knows.
  std::array<std::vector<uint64_t>, kMostLanes + 1> announced_;
  RemoteRegions remote_regions_;

  std::array<OfferedFrame, kMaxOffers> offers_;
  size_t offers_in_use_ = 0;
  std::array<uint16_t, kMaxOffers> granted_;  // offers whose WRITE is to be posted
  size_t granted_count_ = 0;
  size_t writes_ = 0;  // WRITEs that the adapters have

  std::array<uint16_t, kSendSlots> free_slots_;
  size_t free_slot_count_ = kSendSlots;

  // A request holds a send slot, or kSendSlots + the number of an offer.
  WorkRequests requests_;
  static_assert(kDepth <= WorkRequests::kMost);
};

}  // namespace gleaner::transport::rdma
