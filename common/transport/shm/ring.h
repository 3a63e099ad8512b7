// One direction of shared memory between two processes: bytes that one side writes and the other reads.
//
// Each side owns one segment: a page of control, then the ring of what it sends. Only its owner can write to it; the
// other side maps it read-only. So whatever a peer does, it can't change what we have written, and our own positions
// are never read back from memory. What is read of the peer's is believed within bounds only: a position that makes no
// sense is told as such, and no access leaves the ring.
//
// A position counts bytes from the connection's beginning. Frames begin at multiples of kAlignment.
// Threads: a Reader belongs to one thread, a Writer to one at a time; the two may differ.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"

namespace gleaner::transport::shm {

inline constexpr size_t kAlignment = 64;

// The first bytes of a segment. Each field is on a line of its own: they are written at different times.
struct Control {
  alignas(64) std::atomic<uint64_t> written{0};  // position behind what the owner has sent
  alignas(64) std::atomic<uint64_t> taken{0};    // position behind what the owner has taken from the other's ring
  alignas(64) std::atomic<uint32_t> sleeps{0};   // odd: the owner waits for more, and wants to be woken
  alignas(64) std::atomic<uint32_t> crowded{0};  // odd: the owner waits for half a ring of room, and wants to be woken
};
static_assert(sizeof(Control) == 256);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

inline constexpr size_t kControlBytes = 4096;

class Writer {
 public:
  // `ring` is our own, its size a multiple of kAlignment; `own` and `peer` are the two sides' control.
  Writer(MutableBytes ring, Control* own, const Control* peer) : ring_(ring), own_(own), peer_(peer) {}

  // Bytes that append() takes now, looking for more if fewer than `wanted` are known; nothing: the peer's position
  // makes no sense.
  std::optional<size_t> room(size_t wanted);
  void append(ConstBytes bytes);  // at most room()
  void align();                   // the frame is complete
  size_t unpublished() const { return written_ - published_; }
  // The peer may read what was appended. True: it sleeps, and is to be woken.
  [[nodiscard]] bool publish();
  // From now on the peer wakes us once half the ring is free. False: it is by now.
  [[nodiscard]] bool wait_for_room();
  void wait_no_more();
  // Of a writer that waits for room: whether there is some, if less than half the ring. Any thread.
  bool has_room() const;

 private:
  const MutableBytes ring_;
  Control* const own_;
  const Control* const peer_;
  uint64_t written_ = 0;
  uint64_t published_ = 0;
  size_t at_ = 0;            // written_ in the ring
  uint64_t taken_seen_ = 0;  // by the peer, when last looked at
  uint32_t woken_ = 0;       // peer_->sleeps for which it was woken
};

class Reader {
 public:
  // `ring` is the peer's.
  Reader(ConstBytes ring, Control* own, const Control* peer) : ring_(ring), own_(own), peer_(peer) {}

  // Bytes that take() can give, looking for more if fewer than `wanted` are known; nothing: the peer's position makes
  // no sense.
  std::optional<size_t> available(size_t wanted);
  void take(MutableBytes to);  // at most available()
  void align();                // the frame is complete
  size_t unreleased() const { return taken_ - released_; }
  // The peer may write over what was taken. True: it waits for that, and is to be woken.
  [[nodiscard]] bool release();

  // Whether more has come than take() was asked for.
  bool has_news() const { return peer_->written.load(std::memory_order_acquire) != taken_; }
  // From now on the peer wakes us when it publishes. False: it has done so by now.
  [[nodiscard]] bool sleep();
  void awake();

 private:
  const ConstBytes ring_;
  Control* const own_;
  const Control* const peer_;
  uint64_t taken_ = 0;
  uint64_t released_ = 0;
  size_t at_ = 0;              // taken_ in the ring
  uint64_t written_seen_ = 0;  // by the peer, when last looked at
  uint32_t woken_ = 0;         // peer_->crowded for which it was woken
};

}  // namespace gleaner::transport::shm
