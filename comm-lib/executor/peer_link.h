// PeerLink numbers the slices that this worker exchanges with one peer, so that each is delivered exactly once over any
// number of connections. Pure; once warm it allocates no memory.
//
// Sending. Each slice gets the next *number* when it leaves. The link keeps a slice until the peer *confirms* that it
// has arrived, by the number of the first slice that has not. A new connection sends the slices that are not confirmed
// again.
//
// Receiving. The link accepts numbers in their order, without a gap; an earlier number is a repeat. It counts the
// slices that have arrived and that the peer has not been told of.
//
// Numbers may wrap around.
#pragma once

#include <cstdint>
#include <utility>

#include "comm-lib/executor/fifo.h"
#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

class PeerLink {
 public:
  enum class Arrival : uint8_t { kNext, kRepeat, kGap };
  struct Sent {
    wire::Header header;
    Buffer payload;
    uint64_t bytes() const { return payload.size() + wire::kHeaderBytes; }
  };

  // `first`: the first number in both directions, which is 0 except in tests.
  explicit PeerLink(uint32_t first = 0) : next_(first), confirmed_(first), received_(first) {}

  // Gives `slice` its number, and keeps it. Returns its header.
  wire::Header send(Sent slice) {
    slice.header.sequence = next_++;
    unconfirmed_bytes_ += slice.bytes();
    const wire::Header header = slice.header;
    unconfirmed_.push(std::move(slice));
    return header;
  }
  // Drops the slices before number `before`, which the peer has. False: not all of them have been sent.
  bool confirm(uint32_t before) {
    if (is_before(next_, before)) return false;
    for (; is_before(confirmed_, before); ++confirmed_) unconfirmed_bytes_ -= unconfirmed_.pop().bytes();
    return true;
  }
  const Fifo<Sent>& unconfirmed() const { return unconfirmed_; }
  uint64_t unconfirmed_bytes() const { return unconfirmed_bytes_; }  // headers included
  uint32_t next() const { return next_; }                            // number of the next slice to the peer

  Arrival arrival(uint32_t number) const {
    if (number == received_) return Arrival::kNext;
    return is_before(number, received_) ? Arrival::kRepeat : Arrival::kGap;
  }
  // Counts the next slice from the peer.
  void accept(uint64_t bytes) {
    ++received_;
    ++owed_slices_;
    owed_bytes_ += bytes;
  }
  uint32_t received() const { return received_; }  // number of the next slice from the peer
  // Asks for a confirmation, because the peer does not know the last one.
  void owe() { ++owed_slices_; }
  uint32_t owed_slices() const { return owed_slices_; }
  uint64_t owed_bytes() const { return owed_bytes_; }
  // Returns the number to send to the peer as its confirmation. Nothing is owed then.
  uint32_t take_confirmation() {
    owed_slices_ = 0;
    owed_bytes_ = 0;
    return received_;
  }

 private:
  static bool is_before(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

  uint32_t next_;
  uint32_t confirmed_;  // number of the first slice in unconfirmed_
  uint32_t received_;
  uint32_t owed_slices_ = 0;
  uint64_t owed_bytes_ = 0;
  uint64_t unconfirmed_bytes_ = 0;
  Fifo<Sent> unconfirmed_;
};

}  // namespace gleaner::executor
