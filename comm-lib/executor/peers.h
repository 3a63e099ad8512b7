// Peers sends slices to the other workers, and counts those that arrive from them. Pure; once warm it allocates no
// memory, except in waiting_for().
//
// Sending. A slice waits in the peer's ReadyQueue until the peer is connected and the *window* has room: the bytes that
// were sent to a peer, and that it has not confirmed, stay below the window, or are those of one slice. So few bytes
// wait in kernel buffers, and an urgent slice that becomes ready late overtakes the others. The slices of calls may be
// larger than the window; two of them may be in flight, so that one is on its way while the other is confirmed.
//
// Repeats. A new connection begins with the slices that the peer has not confirmed, in their order. They leave as
// copies: the peer may have them already, and this worker may then have changed the memory.
//
// Confirmations leave with the next slice to the same peer; else, once kMostOwedSlices slices or an eighth of the
// window are not confirmed, at once; else with the next tick().
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "comm-lib/exchange/piece_request.h"
#include "comm-lib/executor/peer_link.h"
#include "comm-lib/executor/ready_queue.h"
#include "comm-lib/executor/slice_recorder.h"
#include "common/base/buffer.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

using exchange::Actions;

class Peers {
 public:
  static constexpr uint32_t kMostOwedSlices = 32;
  static constexpr uint64_t kMostOwedBytes = uint64_t{256} << 10;

  struct Counters {
    uint64_t sent = 0;        // slices, repeats included
    uint64_t sent_bytes = 0;  // their payload bytes
    uint64_t repeated = 0;    // slices sent again
  };

  // `job` and `worker`: fields of the frames of this worker. `pool` and `recorder` must outlive the Peers.
  Peers(uint64_t job, uint32_t worker, BufferPool* pool, const SliceRecorder* recorder)
      : job_(job), worker_(worker), pool_(pool), recorder_(*recorder) {}

  // Sets the number of workers, and the epoch of frames, which a plan says.
  void apply(uint32_t workers, uint32_t epoch) {
    peers_.resize(workers);
    epoch_ = epoch;
  }
  void set_window(uint64_t bytes) { window_bytes_ = bytes; }
  uint64_t window_bytes() const { return window_bytes_; }

  // Sends a slice to `peer`, now or later.
  void send(uint32_t peer, OutgoingSlice slice, absl::Duration now, Actions& actions);
  // Sends a kAwait about `subject` at once. False: the peer is not connected.
  bool await(uint32_t peer, const Subject& subject, Actions& actions);

  // A call for a peer that is connected begins a new connection, too. Slices in `actions` that the caller has not sent
  // yet belong to the last connection; on_connected() removes them.
  void on_connected(uint32_t peer, Actions& actions);
  void on_disconnected(uint32_t peer) { peers_[peer].is_connected = false; }
  // Records that a peer has left the job cleanly: nothing waits for its confirmations any more.
  void on_left(uint32_t peer) { peers_[peer].has_left = true; }

  // Records that a frame has come from `peer`.
  void on_heard(uint32_t peer, absl::Duration now) { peers_[peer].since = now; }
  // Takes a confirmation, and sends what the window then has room for. False: the peer confirms a slice that was not
  // sent.
  [[nodiscard]] bool on_confirmed(uint32_t peer, uint32_t confirmed, Actions& actions);
  PeerLink::Arrival arrival(uint32_t peer, uint32_t number) const { return peers_[peer].link.arrival(number); }
  uint32_t received(uint32_t peer) const { return peers_[peer].link.received(); }
  uint32_t sent(uint32_t peer) const { return peers_[peer].link.next(); }
  void accept(uint32_t peer, uint64_t bytes) { peers_[peer].link.accept(bytes); }
  // Confirms again what has arrived, with the next tick.
  void on_repeat(uint32_t peer) { peers_[peer].link.owe(); }
  // Sends a confirmation if many slices are not confirmed. With tick(): if any is not.
  void confirm(uint32_t peer, Actions& actions);
  void tick(Actions& actions);

  // Record that a run begins or ends to wait for a slice from `peer`.
  void block(uint32_t peer, absl::Duration now);
  void unblock(uint32_t peer) { --peers_[peer].blocked; }

  // Returns whether every slice is confirmed, and no confirmation is owed. Peers that have left do not count.
  bool idle() const;
  // Returns the peers that owe slices or confirmations; the one that has been silent for longest comes first.
  std::vector<uint32_t> waiting_for() const;
  uint64_t unconfirmed_bytes() const;
  const Counters& counters() const { return counters_; }
  // Forgets all slices and what is owed.
  void clear();

 private:
  struct Peer {
    bool is_connected = false;
    bool has_left = false;
    uint32_t blocked = 0;  // number of runs that wait for a slice from this peer
    // The time of the last frame from the peer, or of the first block() or send() after it owed nothing.
    absl::Duration since;
    PeerLink link;
    ReadyQueue ready;
    bool owes() const { return blocked > 0 || awaits_confirmation(); }
    bool awaits_confirmation() const { return !has_left && (!link.unconfirmed().empty() || !ready.empty()); }
  };

  bool has_room(const Peer& peer) const;
  void flush(uint32_t index, Actions& actions);
  void send_confirmation(uint32_t index, Actions& actions);
  Buffer copy_of(const Buffer& payload) const;
  void repeat(uint32_t index, Actions& actions);
  wire::Header header_of(wire::FrameType type) const;

  const uint64_t job_;
  const uint32_t worker_;
  BufferPool* const pool_;
  const SliceRecorder& recorder_;
  uint32_t epoch_ = 0;
  uint64_t window_bytes_ = 0;
  std::vector<Peer> peers_;  // by worker
  Counters counters_;
};

}  // namespace gleaner::executor
