// Sender is the sending half of a connection. It queues frames, and makes packets and work requests of them.
//
// Small frames are copied into send slots (send_slots.h), many into one, and each slot is sent by one SEND. A large
// frame is offered by its header (offers.h). Once the peer has granted a place for the payload, one WRITE sends it from
// its own buffer, by the lane that the grant names.
//
// Every work request holds a slot or an offer, and the send queues have room for all slots and offers, so they can't
// overrun. On lanes each work request asks for a completion.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/transport/rdma/announced_regions.h"
#include "common/transport/rdma/domain.h"
#include "common/transport/rdma/frame_queue.h"
#include "common/transport/rdma/item_queue.h"
#include "common/transport/rdma/lane.h"
#include "common/transport/rdma/offers.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/remote_regions.h"
#include "common/transport/rdma/send_slots.h"
#include "common/transport/rdma/slot_credits.h"
#include "common/transport/rdma/work_requests.h"

namespace gleaner::transport::rdma {

class Sender {
 public:
  static constexpr size_t kDepth = SendSlots::kCount + kMaxOffers;  // of the send queue
  static constexpr size_t kMemory = SendSlots::kMemory;

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
  absl::Status on_taken(uint16_t offer) { return offers_.on_taken(offer); }

  // Posts the work requests that can be posted now.
  absl::Status post(ibv_qp* pair);
  // Handles the completion of a work request, which completes all earlier ones as well.
  void on_completed(uint64_t number);
  // Handles the completion of a WRITE by a lane.
  void on_lane_completed(uint16_t offer) { queued_bytes_ -= offers_.on_written_by_lane(offer); }

  size_t queued_bytes() const { return queued_bytes_; }
  bool is_quiet() const { return requests_.all_completed(); }  // the adapter has no work requests
  bool reads_payloads() const { return offers_.are_read(); }   // the adapter may be reading buffers
  // Releases the payloads that no adapter has. push() and grant() must not be called afterwards.
  void drop_waiting();
  // Releases all buffers. May only be called once the adapters have no work requests.
  void clear();

 private:
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
  static absl::Status prepare_for(Lane& lane, Offers::Offer& offer);

  Domain* const domain_;
  const LaneTable* const lanes_;
  SlotCredits* const credits_;
  const bool checksums_;

  FrameQueue frames_;
  size_t queued_bytes_ = 0;
  ItemQueue items_{size_t{4} * kMaxOffers};
  AnnouncedRegions announced_;
  RemoteRegions remote_regions_;
  Offers offers_;
  SendSlots slots_;
  // A request holds a send slot, or SendSlots::kCount + the number of an offer.
  WorkRequests requests_;
  static_assert(kDepth <= WorkRequests::kMost);
};

}  // namespace gleaner::transport::rdma
