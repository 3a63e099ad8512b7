// One direction of shared memory between two processes: a Writer appends bytes to a ring, and a Reader takes them from
// it.
//
// Each side owns one segment: a control page, then the ring for the bytes that it sends. Only the owner can write to a
// segment; the other side maps it read-only. So a peer can't change bytes that this side has written, and this side
// never reads its own positions back from shared memory. It checks the positions that it reads from the peer's control
// page: it reports invalid ones, and never accesses memory outside the ring.
//
// A *position* counts bytes since the connection began. Frames begin at multiples of kAlignment. Each side announces in
// its control page when it waits, and the other side then wakes it once.
//
// Threads: a Reader belongs to one thread, a Writer to one thread at a time; the two may differ.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/bytes.h"

namespace gleaner::transport::shm {

inline constexpr size_t kAlignment = 64;

// The first bytes of a segment. Each field has a cache line of its own, since they are written at different times.
struct Control {
  alignas(64) std::atomic<uint64_t> written{0};  // position behind the last byte that the owner has sent
  alignas(64) std::atomic<uint64_t> taken{0};    // position behind the last byte that the owner has taken from the peer
  alignas(64) std::atomic<uint32_t> waits_for_data{0};  // odd: the owner waits for more bytes, and asks to be woken
  // Odd: the owner waits until half its ring is free, and asks to be woken.
  alignas(64) std::atomic<uint32_t> waits_for_room{0};
};
static_assert(sizeof(Control) == 256);
static_assert(std::atomic<uint64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);

inline constexpr size_t kControlBytes = 4096;

class Writer {
 public:
  // `ring` is this side's ring; its size is a multiple of kAlignment. `own` and `peer` are the control pages of the two
  // sides.
  Writer(MutableBytes ring, Control* own, const Control* peer) : ring_(ring), own_(own), peer_(peer) {}

  // Returns how many bytes append() accepts now. Reads the peer's position only if fewer than `wanted` are known to be
  // free. nullopt: the peer's position is invalid.
  std::optional<size_t> room(size_t wanted);
  void append(ConstBytes bytes);  // at most room()
  void align();                   // ends a frame: pads to a multiple of kAlignment
  size_t unpublished() const { return written_ - published_; }
  // Lets the peer read the bytes that were appended. Returns true if the peer sleeps and has to be woken.
  [[nodiscard]] bool publish();
  // Asks the peer to wake this side once half the ring is free. Returns false if it is free by now.
  [[nodiscard]] bool wait_for_room();
  void wait_no_more();
  // Returns whether a writer that waits for room can go on, because a sixteenth of the ring is free. Any thread.
  bool has_room() const;

 private:
  const MutableBytes ring_;
  Control* const own_;
  const Control* const peer_;
  uint64_t written_ = 0;
  uint64_t published_ = 0;
  size_t at_ = 0;            // offset of written_ in the ring
  uint64_t taken_seen_ = 0;  // peer_->taken when last read
  uint32_t woken_ = 0;       // value of peer_->waits_for_data for which the peer was last woken
};

class Reader {
 public:
  // `ring` is the peer's ring. `own` and `peer` are the control pages of the two sides.
  Reader(ConstBytes ring, Control* own, const Control* peer) : ring_(ring), own_(own), peer_(peer) {}

  // Returns how many bytes take() can return now. Reads the peer's position only if fewer than `wanted` are known to
  // have arrived. nullopt: the peer's position is invalid.
  std::optional<size_t> available(size_t wanted);
  void take(MutableBytes to);  // at most available()
  void align();                // ends a frame: skips to a multiple of kAlignment
  size_t unreleased() const { return taken_ - released_; }
  // Lets the peer overwrite the bytes that were taken. Returns true if the peer waits for room and has to be woken.
  [[nodiscard]] bool release();

  // Returns whether bytes have arrived that take() has not taken.
  bool has_data() const { return peer_->written.load(std::memory_order_acquire) != taken_; }
  // Asks the peer to wake this side when it publishes. Returns false if it has published meanwhile.
  [[nodiscard]] bool wait_for_data();
  void wait_no_more();

 private:
  const ConstBytes ring_;
  Control* const own_;
  const Control* const peer_;
  uint64_t taken_ = 0;
  uint64_t released_ = 0;
  size_t at_ = 0;              // offset of taken_ in the ring
  uint64_t written_seen_ = 0;  // peer_->written when last read
  uint32_t woken_ = 0;         // value of peer_->waits_for_room for which the peer was last woken
};

}  // namespace gleaner::transport::shm
