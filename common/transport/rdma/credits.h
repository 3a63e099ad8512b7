// How many messages a connection may still send, so that there is always a receive slot for each at the peer. Pure.
//
// Each SEND and each WRITE with an immediate takes a slot of the peer's; the peer tells, with whatever it sends, how
// many it has filled again. The peer keeps a slot while small frames in it wait for a large one before them, so what
// makes large ones come has slots of its own: an offer reserves the one that its WRITE will take, and grants and plain
// returns of credits have a few that no frame gets. WRITEs by lanes take no slot here; what tells of them does.
#pragma once

#include <cstdint>

#include "common/transport/rdma/packet.h"

namespace gleaner::transport::rdma {

class Credits {
 public:
  // --- Sending.
  bool for_data() const { return free() > kForControl; }
  bool for_offer() const { return free() > kForControl + 1; }
  bool for_grants() const { return free() > 1; }
  bool for_return() const { return free() > 0; }
  void spend() { --left_; }
  void offered() { ++offers_; }
  void written() {  // of an offer, which reserved it
    --offers_;
    --left_;
  }
  void written_elsewhere() { --offers_; }  // its WRITE took a lane's
  // False: the peer tells of more slots than it has.
  [[nodiscard]] bool got(uint16_t returned) {
    left_ += returned;
    return left_ <= kSlots;
  }

  // --- Receiving.
  void refilled() { ++owed_; }
  // A packet has told that payloads were taken. Unlike grants, that may bring about nothing which would tell of its
  // slot, and the few that it may have used are those of grants, too.
  void owes_for_taken() { ++for_taken_; }
  // To be told with what is sent now.
  uint16_t take_owed() {
    const uint16_t owed = owed_;
    owed_ = for_taken_ = 0;
    return owed;
  }
  bool owes_many() const { return owed_ >= kSlots / 4 || for_taken_ >= kForControl / 2; }

 private:
  static constexpr int32_t kForControl = 4;
  int32_t free() const { return left_ - offers_; }

  int32_t left_ = kSlots;
  int32_t offers_ = 0;  // whose WRITE is still to come
  uint16_t owed_ = 0;
  uint16_t for_taken_ = 0;
};

}  // namespace gleaner::transport::rdma
