// SlotCredits implements flow control: it counts the messages that a connection may still send, so that the peer has a
// receive slot for each and receiver-not-ready never happens. Pure.
//
// Each SEND, and each WRITE with an immediate value, uses up a receive slot of the peer. Every message of the peer
// returns credits: the number of slots that it has filled again. These credits count receive slots; they are not the
// credit of an owner, which counts bytes.
//
// The peer keeps a slot while small frames in it wait for a large frame before them. So that this can't block the large
// frame, the messages that make it arrive have slots of their own: an offer reserves the slot that its WRITE will use,
// and kForControl slots are for grants and for returning credits, never for frames. A WRITE by a lane uses no slot of
// this connection, but the packet with its `taken` item does.
#pragma once

#include <cstdint>

#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {

class SlotCredits {
 public:
  // Sending. Each function returns whether a packet may be sent that contains frames, one more offer, grants, or only
  // credits:
  bool for_data() const { return free() > kForControl; }
  bool for_offer() const { return free() > kForControl + 1; }
  bool for_grants() const { return free() > 1; }
  bool for_return() const { return free() > 0; }
  void spend() { --left_; }
  void offered() { ++offers_; }
  void written() {  // uses the slot that the offer reserved
    --offers_;
    --left_;
  }
  void written_elsewhere() { --offers_; }  // the WRITE went by a lane
  // Records credits that the peer returned. Returns false if the peer then had more free slots than it has slots.
  [[nodiscard]] bool got(uint16_t returned) {
    left_ += returned;
    return left_ <= kSlots;
  }

  // Receiving.
  void refilled() { ++owed_; }
  // Records that a packet with `taken` items has arrived. Such packets are counted separately: a grant is answered by a
  // WRITE, which returns the grant's slot, but a packet with `taken` may have no answer and may have used one of the
  // slots for control.
  void owes_for_taken() { ++for_taken_; }
  // Returns the credits to return with the message that is sent now.
  uint16_t take_owed() {
    const uint16_t owed = owed_;
    owed_ = for_taken_ = 0;
    return owed;
  }
  // Returns whether credits have to be returned even if there is nothing else to send.
  bool owes_many() const { return owed_ >= kSlots / 4 || for_taken_ >= kForControl / 2; }

 private:
  static constexpr int32_t kForControl = 4;
  int32_t free() const { return left_ - offers_; }

  int32_t left_ = kSlots;
  int32_t offers_ = 0;      // offers whose WRITE has not been posted
  uint16_t owed_ = 0;       // slots that were filled again and whose credits have not been returned
  uint16_t for_taken_ = 0;  // packets with `taken` items whose credits have not been returned
};

}  // namespace gleaner::transport::rdma
