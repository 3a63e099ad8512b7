// Frames from other workers, and questions to them.
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/executor/checks.h"
#include "comm-lib/executor/executor.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"

namespace gleaner::executor {

absl::Status Executor::on_frame(uint32_t sender, const wire::Header& header, Buffer payload, absl::Duration now,
                                Actions& actions) {
  if (!failure_.ok()) return absl::OkStatus();
  if (plan_ == nullptr) return absl::FailedPreconditionError("a frame arrived before the first plan");
  GLN_RETURN_IF_ERROR(check_sender(*plan_, options_.job, options_.worker, sender, header));
  peers_.on_heard(sender, now);
  if (!peers_.on_confirmed(sender, header.confirmed, actions)) {
    return frame_error(*plan_, options_.worker, header,
                       absl::StrCat("it confirms the slices before ", header.confirmed,
                                    ", but the next slice to send is ", peers_.sent(sender)));
  }
  if (header.type == wire::FrameType::kArrived) return absl::OkStatus();
  if (header.type == wire::FrameType::kAwait) return on_awaited(header, now, actions);
  return on_slice(sender, header, std::move(payload), now, actions);
}

absl::Status Executor::on_slice(uint32_t sender, const wire::Header& header, Buffer payload, absl::Duration now,
                                Actions& actions) {
  const PeerLink::Arrival arrival = peers_.arrival(sender, header.sequence);
  if (arrival == PeerLink::Arrival::kRepeat && !GLN_MUTATION("a slice counts twice")) {
    ++counters_.duplicate_slices;
    peers_.on_repeat(sender);
    return absl::OkStatus();
  }
  if (arrival == PeerLink::Arrival::kGap) {
    return frame_error(*plan_, options_.worker, header,
                       absl::StrCat("expected slice ", peers_.received(sender), " first"));
  }
  // The link counts a slice only once its checks have passed, so that a slice that fails them is never confirmed.
  if (is_of_later_plan(header)) {
    GLN_RARE("executor: a slice of a tensor or a schedule that only a later plan has");
    peers_.accept(sender, payload.size());
    if (!GLN_MUTATION("a slice does not wait for its plan")) {
      later_frames_.push_back({sender, header, std::move(payload)});
    }
    peers_.confirm(sender, actions);
    return absl::OkStatus();
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t run, runs_.of_slice(header, payload.size(), actions.refused));
  peers_.accept(sender, payload.size());
  deliver(run, sender, std::move(payload), now, actions);
  begin_runs(now, actions);
  peers_.confirm(sender, actions);
  return absl::OkStatus();
}

bool Executor::is_of_later_plan(const wire::Header& header) const {
  return header.epoch > plan_->epoch && !schedules_.sums(header.schedule, header.tensor);
}

void Executor::deliver(uint32_t index, uint32_t sender, Buffer payload, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  const uint32_t source = schedules_[run.schedule].source_of(sender);
  recorder_.on_arrived(*plan_, run, source);
  run.cursor.add(source, std::move(payload));
  run.is_wanted = true;
  if (!run.cursor.has_begun()) return admit_if_wanted(index, now, actions);
  if (run.waits_for != sender) return;
  run.waits_for = kNone;
  peers_.unblock(sender);
  advance(index, now, actions);
}

// A peer has begun a run, and waits for this worker.
absl::Status Executor::on_awaited(const wire::Header& header, absl::Duration now, Actions& actions) {
  if (is_of_later_plan(header)) {
    later_frames_.push_back({header.sender, header, {}});
    return absl::OkStatus();
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t run, runs_.of_await(header, actions.refused));
  if (run == kNone) return absl::OkStatus();
  runs_[run].is_wanted = true;
  admit_if_wanted(run, now, actions);
  return absl::OkStatus();
}

// Asks the peers that may not have begun a run, which has waited for them since the last tick.
void Executor::ask_peers(Actions& actions) {
  if (GLN_MUTATION("workers do not ask for the slices that they wait for")) return;
  for (uint32_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    if (run.waits_for == kNone || ++run.ticks_blocked != 2) continue;
    if (run.cursor.has_slice_from(schedules_[run.schedule].source_of(run.waits_for))) continue;
    wire::Header awaited;
    awaited.op = run.op;
    awaited.tensor = plan_->partitions[run.partition].tensor;
    awaited.partition = run.partition - plan_->first_partition[awaited.tensor];
    awaited.schedule = run.schedule;
    awaited.step = run.step;
    if (peers_.await(run.waits_for, awaited, actions)) {
      GLN_RARE("executor: a worker asks a peer to begin a partition");
    }
  }
}

// Delivers the frames that have waited for this plan. Their connections may be gone, so an error ends the exchange.
void Executor::deliver_later_frames(absl::Duration now, Actions& actions) {
  std::vector<LaterFrame> waiting = std::exchange(later_frames_, {});
  for (LaterFrame& frame : waiting) {
    if (is_of_later_plan(frame.header)) {
      later_frames_.push_back(std::move(frame));
    } else if (frame.header.type == wire::FrameType::kAwait) {
      actions.refused.Update(on_awaited(frame.header, now, actions));
    } else if (const auto run = runs_.of_slice(frame.header, frame.payload.size(), actions.refused); run.ok()) {
      deliver(*run, frame.sender, std::move(frame.payload), now, actions);
    } else {
      actions.refused.Update(run.status());
    }
  }
}

}  // namespace gleaner::executor
