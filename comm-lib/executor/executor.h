// Executor is the worker's protocol core for tensors with a schedule: it sums their partitions by executing the
// schedule's programs between the workers, without summers. docs/protocol.md#slices specifies the frames, and
// docs/schedules.md the schedules. It does no I/O, starts no thread, and reads no clock, except that of the
// trace::Recorder while that is on.
//
// Terms. A *slice* is the part of a partition that one send operation names. A *run* is one partition in one push_pull.
// The *step* of a partition in a schedule is the number of its push_pulls that this schedule has summed before. So the
// schedules of one partition are independent of each other: after a change of strategy the last push_pull of one and
// the first of the other may be in flight at the same time on different workers, and a schedule that comes back goes on
// with its next step.
//
// Runs. The machine (machine.h) executes a run: the program of this worker's rank, on a copy of the partition in the
// partial type (Plan::encoding()). A sum that is complete is divided, for an average, and rounded to the tensor's type,
// before other workers get it. At the end of the program the results go into the piece's output. After an all-gather,
// each worker adds all contributions by itself, in the order of workers. The bits are those of
// collective::execute_all_reduce() (common/collective/oracle.h). All partitions in flight execute beside each other, so
// that links stay full. A piece is done when its last program has ended.
//
// Early slices. Another worker may be ahead, by at most one step: its sum of this step needs this worker's
// contribution. Its slices wait in the buffers in which they came. Their number is bounded by what the programs receive
// in one step. Slices of a tensor, or by a schedule of a tensor, that only a later plan has wait for that plan.
//
// Exactly once. Slices between two workers are numbered, confirmed, and sent again over new connections (peer_link.h).
// A slice that does not fit this worker's program is an error, never a wrong sum.
//
// Once warm, a partition costs no allocation, no lock and no system call (tests/unit counts them).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/exchange.h"
#include "comm-lib/executor/calls.h"
#include "comm-lib/executor/counters.h"
#include "comm-lib/executor/machine.h"
#include "comm-lib/executor/open_pieces.h"
#include "comm-lib/executor/open_runs.h"
#include "comm-lib/executor/schedules.h"
#include "common/base/buffer.h"
#include "common/kernels/kernels.h"
#include "common/plan/plan.h"
#include "common/trace/recorder.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

using exchange::PieceRequest;

struct Options {
  uint64_t job = 0;     // wire::job_number() of the job's name
  uint32_t worker = 0;  // member index of this worker
  // Size of the window of each peer, and limit of the partitions in flight; 0: window_bytes() and
  // plan::schedule_window_bytes() decide.
  uint64_t window_bytes = 0;
};

// Returns plan::peer_window_bytes() with the frames' headers.
uint64_t window_bytes(const plan::Plan& plan, uint32_t worker, uint64_t asked, absl::Duration round_trip);

class Executor : public exchange::Exchange, private RunOwner {
 public:
  // `pool`, `kernels` and `recorder` must outlive the executor, which sums on the caller's thread. `recorder` may be
  // null.
  Executor(const Options& options, BufferPool* pool, const kernels::Kernels* kernels,
           trace::Recorder* recorder = nullptr);
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  // exchange::Exchange. Members are workers; calls about other members have no effect. on_frame() handles a kSlice,
  // kArrived or kAwait. prepare() and apply() return InvalidArgument if the plan has a schedule that no algorithm makes
  // for its number of workers, or whose messages about a tensor are too large for a frame. start() also returns
  // InvalidArgument if no plan sums the tensor by the piece's schedule, or if another worker asks for another op; then
  // Actions::refused has the same error. step() counts the push_pulls that any schedule has summed.
  absl::Status prepare(const plan::Plan& plan) override { return schedules_.prepare(plan, options_.worker); }
  absl::Status apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) override;
  absl::Status start(PieceRequest piece, absl::Duration now, Actions& actions) override;
  void on_connected(uint32_t member, absl::Duration now, Actions& actions) override;
  void on_disconnected(uint32_t member) override;
  absl::Status on_frame(uint32_t member, const wire::Header& header, Buffer payload, absl::Duration now,
                        Actions& actions) override;
  void set_round_trip(absl::Duration round_trip) override;
  void on_tick(absl::Duration now, Actions& actions) override;
  void set_ending(std::span<const uint32_t> left) override;
  void fail(const absl::Status& status, Actions& actions) override;
  uint64_t step(uint32_t tensor, uint32_t partition) const override;
  // Returns whether no piece is in flight, every slice is confirmed, and no confirmation is owed. Workers that have
  // left do not count: their programs have ended, so they had all their slices.
  bool idle() const override;
  // Returns the workers for whose slices a run waits, and those that owe confirmations or can't be reached; the one
  // that has been silent for longest comes first. None while no piece is in flight: a worker that has all its results
  // waits for confirmations only to leave, and peers that lack its slices wait for it.
  std::vector<uint32_t> waiting_for() const override;
  // Make a group of workers, remove it, and start a call in it (calls.h). FailedPrecondition: there is no plan yet.
  absl::Status add_group(uint32_t group, std::vector<uint32_t> members);
  absl::Status remove_group(uint32_t group, Actions& actions) { return calls_.remove_group(group, actions); }
  absl::Status start_call(const Call& call, absl::Duration now, Actions& actions);
  std::string describe_call(uint64_t id) const { return calls_.describe(id); }
  bool has_arrived(uint32_t group) const { return calls_.has_arrived(group); }
  // Returns the counters. The next call updates them.
  const Counters& counters() const;

 private:
  static constexpr uint32_t kNone = Run::kNone;
  // A kSlice or kAwait about a tensor, or a schedule of a tensor, that only a later plan has.
  struct LaterFrame {
    uint32_t sender = 0;
    wire::Header header;
    Buffer payload;
  };

  // Plans, pieces and runs (executor.cc).
  absl::Status check_start(const PieceRequest& piece, uint32_t begin, uint32_t end, Actions& actions) const;
  void begin(Run& run) override;
  void take_results(Run& run) override;
  void finish(uint32_t run, Actions& actions) override;

  // Frames (frames.cc).
  absl::Status on_slice(uint32_t sender, const wire::Header& header, Buffer payload, absl::Duration now,
                        Actions& actions);
  bool is_of_later_plan(const wire::Header& header) const;
  absl::Status on_awaited(const wire::Header& header, absl::Duration now, Actions& actions);
  void deliver_later_frames(absl::Duration now, Actions& actions);

  const Options options_;
  BufferPool* const pool_;
  const kernels::Kernels* const kernels_;
  std::shared_ptr<const plan::Plan> plan_;
  Schedules schedules_;
  Machine machine_;
  OpenRuns runs_;
  OpenPieces pieces_;
  Calls calls_;
  std::vector<LaterFrame> later_frames_;
  absl::Duration round_trip_;
  absl::Status failure_;       // set by fail()
  mutable Counters counters_;  // counters() computes some of them
};

}  // namespace gleaner::executor
