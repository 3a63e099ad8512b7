// Machine executes runs: the programs of one worker's rank, beside each other, on slices that it exchanges with the
// other workers. It knows nothing of plans: a run has a Subject, by which workers find the same run, and an owner, who
// gives it this worker's contribution and takes its results.
//
// A run *begins* when there is room for it among the runs in flight, or when a peer has begun it (start_queue.h). The
// owner then copies the contribution into a *work buffer*, and the machine executes the program on it (cursor.h): a
// send leaves as a part of the work buffer, without a copy; a receive waits for its slice, and adds it to the work
// buffer or replaces a part of it. The schedule's rules (docs/schedules.md) let a work buffer be sent from: no receive
// changes a part of it before the peer has received what was sent. The work buffer lives until the peers have confirmed
// all its slices.
//
// Slices to one peer leave by the order of their runs, within a window, and exactly once (peers.h).
//
// Pure. Belongs to one thread. Once warm, a run costs no allocation.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/time/time.h"
#include "comm-lib/executor/arrived_slices.h"
#include "comm-lib/executor/peers.h"
#include "comm-lib/executor/run.h"
#include "comm-lib/executor/slice_recorder.h"
#include "comm-lib/executor/start_queue.h"
#include "common/base/buffer.h"
#include "common/base/slots.h"
#include "common/kernels/kernels.h"

namespace gleaner::executor {

// Opens runs, and closes them in finish().
class RunOwner {
 public:
  // Calls begin() of the run's cursor, with this worker's contribution.
  virtual void begin(Run& run) = 0;
  // Takes the results of a run whose program has ended.
  virtual void take_results(Run& run) = 0;
  // Closes that run.
  virtual void finish(uint32_t run, Actions& actions) = 0;

 protected:
  ~RunOwner() = default;
};

class Machine {
 public:
  static constexpr uint32_t kNone = Run::kNone;

  // `job` and `worker`: fields of the frames of this worker. `pool`, `kernels` and `recorder` must outlive the Machine;
  // `recorder` may be null.
  Machine(uint64_t job, uint32_t worker, BufferPool* pool, const kernels::Kernels* kernels, trace::Recorder* recorder)
      : kernels_(kernels), recorder_(recorder), peers_(job, worker, pool, &recorder_) {}
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  Run& operator[](uint32_t run) { return runs_[run]; }
  const Run& operator[](uint32_t run) const { return runs_[run]; }
  Peers& peers() { return peers_; }
  const Peers& peers() const { return peers_; }
  // Adds a queue, which must exist until remove_queue() or the machine's last call. Runs of one queue begin in its
  // order; those of other queues do not keep them waiting.
  void add_queue(StartQueue* queue);
  // Removes a queue. All its runs must be closed.
  void remove_queue(StartQueue* queue);
  // Sets the limit of the partial sums of runs in flight, in bytes, of each queue.
  void set_limit(uint64_t bytes);
  uint64_t limit() const { return limit_bytes_; }

  // Returns a new run, whose cursor is at the start of `program`, for `elements` elements. `owner`, `queue` and
  // `program` must outlive it.
  uint32_t open(RunOwner* owner, StartQueue* queue, const Subject& subject, const Order& order, const Program* program,
                uint64_t elements, const Cursor::Types& types);
  // Returns a new run of a call, whose chunks lie from begins[i] to begins[i + 1], in bytes.
  uint32_t open(RunOwner* owner, StartQueue* queue, const Subject& subject, const Order& order, const Program* program,
                std::span<const uint64_t> begins);
  void close(uint32_t run);
  // Forgets all that waits for a turn, and all slices. All runs must be closed.
  void clear();

  // Records that this worker has started a run. The caller then calls begin_runs().
  void start(uint32_t run, absl::Duration now, Actions& actions);
  // Begins the runs for which there is room.
  void begin_runs(absl::Duration now, Actions& actions);
  // Takes the next slice from `sender`, which has the size that the run's cursor expects.
  void deliver(uint32_t run, uint32_t sender, Buffer payload, absl::Duration now, Actions& actions);
  // Records that a peer has begun a run, and waits for this worker.
  void want(uint32_t run, absl::Duration now, Actions& actions);

  void on_connected(uint32_t peer, Actions& actions);
  // Begins runs, and asks the peers that may not have begun a run, which has waited for them since the last tick.
  void on_tick(absl::Duration now, Actions& actions);

 private:
  uint32_t take(RunOwner* owner, StartQueue* queue, const Subject& subject, const Order& order, uint64_t bytes);
  void begin_runs(StartQueue& queue, absl::Duration now, Actions& actions);
  void begin(uint32_t run, absl::Duration now, Actions& actions);
  void admit_if_wanted(uint32_t run, absl::Duration now, Actions& actions);
  void advance(uint32_t run, absl::Duration now, Actions& actions);
  void ask_peers(Actions& actions);

  const kernels::Kernels* const kernels_;
  const SliceRecorder recorder_;
  ArrivedSlices arrived_;
  Slots<Run> runs_;
  uint64_t opened_ = 0;  // number of runs, ever
  std::vector<StartQueue*> queues_;
  uint64_t limit_bytes_ = 0;
  Peers peers_;
};

}  // namespace gleaner::executor
