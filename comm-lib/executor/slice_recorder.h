// SliceRecorder records, in a trace (common/trace), the life of each partition that a schedule sums, and of its slices.
// While no trace is on, a call costs a branch; while one is on, it costs what trace::Recorder says, and no allocation.
// Belongs to the thread of the Recorder.
#pragma once

#include <cstdint>

#include "comm-lib/executor/program.h"
#include "comm-lib/executor/ready_queue.h"
#include "comm-lib/executor/run.h"
#include "common/trace/recorder.h"

namespace gleaner::executor {

class SliceRecorder {
 public:
  // `recorder` must outlive the SliceRecorder. Null: nothing is ever recorded.
  explicit SliceRecorder(trace::Recorder* recorder) : recorder_(recorder) {}

  // Records that a run begins, or that its program has ended.
  void on_begun(const Run& run) const { record_run(trace::Kind::kBegun, run); }
  void on_ended(const Run& run) const { record_run(trace::Kind::kEnded, run); }

  // Records that a slice leaves its queue for `peer`.
  void on_sent(uint32_t peer, const OutgoingSlice& slice) const {
    if (!is_on(slice.subject)) return;
    recorder_->record({.nanoseconds = recorder_->now(),
                       .step = slice.subject.step,
                       .tensor = slice.subject.tensor,
                       .partition = slice.subject.partition,
                       .bytes = static_cast<uint32_t>(slice.payload.size()),
                       .peer = static_cast<uint16_t>(peer),
                       .kind = trace::Kind::kSliceSent,
                       .schedule = static_cast<uint8_t>(slice.subject.schedule),
                       .schedule_step = slice.schedule_step,
                       .chunk = slice.chunk});
  }

  // Records that the next slice from a worker, by its number among the program's sources, has arrived.
  void on_arrived(const Run& run, uint32_t source) const {
    if (is_on(run.subject)) record_slice(trace::Kind::kSliceArrived, run, run.cursor.next_receive(source));
  }
  // Records that the program has executed a receive.
  void on_received(const Run& run, const Program::Operation& receive) const {
    if (!is_on(run.subject)) return;
    const bool is_added = receive.kind == Program::Kind::kAdd;
    record_slice(is_added ? trace::Kind::kSliceAdded : trace::Kind::kSliceCopied, run, receive);
  }

 private:
  // A trace has tensors, and no calls.
  bool is_on(const Subject& subject) const { return recorder_ != nullptr && recorder_->is_on() && !subject.is_call(); }

  trace::Event event_of(trace::Kind kind, const Run& run) const {
    return {.nanoseconds = recorder_->now(),
            .step = run.subject.step,
            .tensor = run.subject.tensor,
            .partition = run.subject.partition,
            .bytes = static_cast<uint32_t>(run.cursor.contribution_bytes()),
            .peer = 0,
            .kind = kind,
            .schedule = static_cast<uint8_t>(run.subject.schedule),
            .schedule_step = 0,
            .chunk = 0};
  }
  void record_run(trace::Kind kind, const Run& run) const {
    if (is_on(run.subject)) recorder_->record(event_of(kind, run));
  }
  void record_slice(trace::Kind kind, const Run& run, const Program::Operation& receive) const {
    trace::Event event = event_of(kind, run);
    event.bytes = static_cast<uint32_t>(run.cursor.bytes_of(receive));
    event.peer = static_cast<uint16_t>(receive.peer);
    event.schedule_step = receive.step;
    event.chunk = receive.slice.first;
    recorder_->record(event);
  }

  trace::Recorder* const recorder_;
};

}  // namespace gleaner::executor
