// Offers holds the large frames that a sender has offered to the peer, until their numbers are free again. Pure.
//
// An offer is *open* until the peer grants it a place, by the connection's own link (lane 0) or by another lane. Its
// WRITE then *waits* to be posted; after that an adapter reads the payload until the WRITE completes. The number of a
// payload that goes by the link is free with that completion. The number of a payload that goes by a lane is free once
// the peer has also said that the payload has arrived (taken); either may come first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/transport/rdma/packet.h"
#include "common/transport/rdma/remote_regions.h"

namespace gleaner::transport::rdma {

class Offers {
 public:
  struct Offer {
    Buffer payload;
    size_t bytes = 0;              // of the frame; 0: the number is free
    RemoteRegions::Target target;  // the place that the peer granted
    uint32_t local_key = 0;        // of the payload, in the domain of the link or lane by which it goes
    uint16_t lane = 0;             // by which the payload goes
    bool granted = false;
    bool written = false;  // the WRITE by a lane has completed
    bool taken = false;    // the payload has arrived by a lane
  };

  bool full() const { return in_use_ == kMaxOffers; }
  // Adds an open offer of a frame of `bytes` bytes, and returns its number. Needs !full().
  uint16_t add(Buffer payload, size_t bytes, uint32_t local_key);

  // Returns the open offer that the peer grants. InvalidArgument: there is no open offer with this number.
  absl::StatusOr<Offer*> find_open(uint16_t number);
  // Records the place that the peer has granted to an open offer. Its WRITE waits from now on.
  void grant(uint16_t number, uint16_t lane, const RemoteRegions::Target& target);
  // Records that the payload has arrived, as the peer says. InvalidArgument: it was not granted a lane, or the peer has
  // said so before.
  absl::Status on_taken(uint16_t number);

  const Offer& at(uint16_t number) const { return offers_[number]; }

  // Returns the offers whose WRITEs wait, in the order of their grants: those that go by the link, and those that go by
  // lanes. The functions posted_…() record that the first `count` of them were posted.
  std::span<const uint16_t> waiting_for_link() const { return for_link_.numbers(); }
  std::span<const uint16_t> waiting_for_lanes() const { return for_lanes_.numbers(); }
  void posted_by_link(size_t count) { post(for_link_, count); }
  void posted_by_lanes(size_t count) { post(for_lanes_, count); }

  // Records that the WRITE of a payload by the link or by a lane has completed. Releases the payload. Returns the bytes
  // of the frame.
  size_t on_written(uint16_t number);
  size_t on_written_by_lane(uint16_t number);

  bool are_read() const { return writes_ > 0; }  // adapters may be reading payloads
  // Releases the payloads that no adapter has. add() and grant() must not be called afterwards.
  void drop_waiting();
  // Releases all payloads. May only be called once the adapters have no WRITEs.
  void clear();

 private:
  class Waiting {
   public:
    std::span<const uint16_t> numbers() const { return std::span(numbers_).first(count_); }
    void push(uint16_t number) { numbers_[count_++] = number; }
    void drop_first(size_t count) {
      std::copy(numbers_.begin() + static_cast<ptrdiff_t>(count), numbers_.begin() + static_cast<ptrdiff_t>(count_),
                numbers_.begin());
      count_ -= count;
    }

   private:
    std::array<uint16_t, kMaxOffers> numbers_;
    size_t count_ = 0;
  };

  void post(Waiting& waiting, size_t count) {
    waiting.drop_first(count);
    writes_ += count;
  }
  size_t release_payload(Offer& offer);
  void free_number(Offer& offer);
  void drop(Waiting& waiting);

  std::array<Offer, kMaxOffers> offers_;
  size_t in_use_ = 0;
  Waiting for_link_;
  Waiting for_lanes_;
  size_t writes_ = 0;  // WRITEs that the adapters have
};

}  // namespace gleaner::transport::rdma
