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
  machine_.peers().on_heard(sender, now);
  if (!machine_.peers().on_confirmed(sender, header.confirmed, actions)) {
    return frame_error(*plan_, options_.worker, header,
                       absl::StrCat("it confirms the slices before ", header.confirmed,
                                    ", but the next slice to send is ", machine_.peers().sent(sender)));
  }
  if (header.type == wire::FrameType::kArrived) return absl::OkStatus();
  if (header.type == wire::FrameType::kAwait) {
    if (!Calls::is_about_call(header)) return on_awaited(header, now, actions);
    actions.refused.Update(calls_.on_frame(header, {}, now, actions));
    return absl::OkStatus();
  }
  return on_slice(sender, header, std::move(payload), now, actions);
}

absl::Status Executor::on_slice(uint32_t sender, const wire::Header& header, Buffer payload, absl::Duration now,
                                Actions& actions) {
  Peers& peers = machine_.peers();
  const PeerLink::Arrival arrival = peers.arrival(sender, header.sequence);
  if (arrival == PeerLink::Arrival::kRepeat && !GLN_MUTATION("a slice counts twice")) {
    ++counters_.duplicate_slices;
    peers.on_repeat(sender);
    return absl::OkStatus();
  }
  if (arrival == PeerLink::Arrival::kGap) {
    return frame_error(*plan_, options_.worker, header,
                       absl::StrCat("expected slice ", peers.received(sender), " first"));
  }
  if (Calls::is_about_call(header)) {
    peers.accept(sender, payload.size());
    actions.refused.Update(calls_.on_frame(header, std::move(payload), now, actions));
    machine_.begin_runs(now, actions);
    peers.confirm(sender, actions);
    return absl::OkStatus();
  }
  // The link counts a slice only once its checks have passed, so that a slice that fails them is never confirmed.
  if (is_of_later_plan(header)) {
    GLN_RARE("executor: a slice of a tensor or a schedule that only a later plan has");
    peers.accept(sender, payload.size());
    if (!GLN_MUTATION("a slice does not wait for its plan")) {
      later_frames_.push_back({sender, header, std::move(payload)});
    }
    peers.confirm(sender, actions);
    return absl::OkStatus();
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t run, runs_.of_slice(header, payload.size(), actions.refused));
  peers.accept(sender, payload.size());
  machine_.deliver(run, sender, std::move(payload), now, actions);
  machine_.begin_runs(now, actions);
  peers.confirm(sender, actions);
  return absl::OkStatus();
}

bool Executor::is_of_later_plan(const wire::Header& header) const {
  return header.epoch > plan_->epoch && !schedules_.sums(header.schedule, header.tensor);
}

// A peer has begun a run, and waits for this worker.
absl::Status Executor::on_awaited(const wire::Header& header, absl::Duration now, Actions& actions) {
  if (is_of_later_plan(header)) {
    later_frames_.push_back({header.sender, header, {}});
    return absl::OkStatus();
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t run, runs_.of_await(header, actions.refused));
  if (run == kNone) return absl::OkStatus();
  machine_.want(run, now, actions);
  return absl::OkStatus();
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
      machine_.deliver(*run, frame.sender, std::move(frame.payload), now, actions);
    } else {
      actions.refused.Update(run.status());
    }
  }
}

}  // namespace gleaner::executor
