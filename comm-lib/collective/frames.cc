// Frames from other workers: slices, and confirmations.
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/collective/checks.h"
#include "comm-lib/collective/executor.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"

namespace gleaner::collective {

absl::Status Executor::on_frame(uint32_t sender, const wire::Header& header, Buffer payload, absl::Duration now,
                                Actions& actions) {
  if (!failure_.ok()) return absl::OkStatus();
  if (plan_ == nullptr) return absl::FailedPreconditionError("a frame arrived before the first plan");
  GLN_RETURN_IF_ERROR(check_sender(*plan_, options_.job, options_.worker, sender, header));
  peers_.on_heard(sender, now);
  starts_.on_frame(now);
  if (!peers_.on_released(sender, header.released, actions)) {
    return frame_error(*plan_, options_.worker, header,
                       absl::StrCat("it confirms the slices before ", header.released,
                                    ", but the next slice to send is ", peers_.sent(sender)));
  }
  if (header.type == wire::FrameType::kArrived) return absl::OkStatus();
  const PeerLink::Arrival arrival = peers_.arrival(sender, header.sequence);
  if (arrival == PeerLink::Arrival::kRepeat && !GLN_MUTATION("a slice counts twice")) {
    ++counters_.duplicate_results;
    peers_.on_repeat(sender);
    return absl::OkStatus();
  }
  if (arrival == PeerLink::Arrival::kGap) {
    return frame_error(*plan_, options_.worker, header,
                       absl::StrCat("expected slice ", peers_.received(sender), " first"));
  }
  // The link counts a slice only once its checks have passed, so that a slice that fails them is never confirmed.
  if (is_of_later_plan(header)) {
    GLN_RARE("collective: a slice of a tensor or a schedule that only a later plan has");
    peers_.accept(sender, payload.size());
    if (!GLN_MUTATION("a slice does not wait for its plan")) {
      later_slices_.push_back({sender, header, std::move(payload)});
    }
    peers_.confirm(sender, actions);
    return absl::OkStatus();
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t run, find_run(header, payload.size(), actions));
  peers_.accept(sender, payload.size());
  deliver(run, sender, std::move(payload), now, actions);
  begin_runs(now, actions);
  peers_.confirm(sender, actions);
  return absl::OkStatus();
}

bool Executor::is_of_later_plan(const wire::Header& header) const {
  return header.epoch > plan_->epoch && !schedules_.sums(header.schedule, header.tensor);
}

// Returns the run to which the next slice of header.sender belongs. Opens the run if the slice is its first.
absl::StatusOr<uint32_t> Executor::find_run(const wire::Header& header, size_t payload_bytes, Actions& actions) {
  GLN_RETURN_IF_ERROR(check_slice(*plan_, schedules_, options_.worker, header));
  const uint32_t index = plan_->index_of(header.tensor, header.partition);
  const uint32_t source = schedules_[header.schedule].source_of(header.sender);
  if (source == Program::kNone) {
    return frame_error(*plan_, options_.worker, header, "the schedule has no message between them");
  }
  PartitionState& state = partitions_[header.schedule][index];
  const bool is_in_flight = state.run != kNone && runs_[state.run].cursor.has_begun();
  const bool is_missing = is_in_flight && runs_[state.run].cursor.expected_bytes(source) > 0;
  GLN_RETURN_IF_ERROR(check_step(*plan_, options_.worker, header, {state.step, is_in_flight, is_missing}));
  const bool is_early = header.step != state.step && !GLN_MUTATION("an early slice goes to the step in flight");
  uint32_t& run = is_early ? state.next : state.run;
  const bool is_first = run == kNone;
  const uint32_t found =
      is_first ? open_run(header.schedule, index, state.step + (is_early ? 1 : 0), header.op, header.sender) : run;
  const uint64_t expected = runs_[found].cursor.expected_bytes(source);
  absl::Status status = check_op(*plan_, options_.worker, header, runs_[found].op, runs_[found].named_by);
  actions.refused.Update(status);
  if (expected == 0) {
    status.Update(frame_error(*plan_, options_.worker, header, "the schedule has no further message between them"));
  } else if (payload_bytes != expected || header.payload_bytes != expected) {
    status.Update(frame_error(
        *plan_, options_.worker, header,
        absl::StrCat("it has ", payload_bytes, " bytes (header: ", header.payload_bytes, "), expected ", expected)));
  }
  if (!status.ok()) {
    if (is_first) runs_.give_back(found);
    return status;
  }
  run = found;
  return found;
}

void Executor::deliver(uint32_t index, uint32_t sender, Buffer payload, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  const uint32_t source = schedules_[run.schedule].source_of(sender);
  recorder_.on_arrived(*plan_, run, source);
  run.cursor.add(source, std::move(payload));
  if (run.waits_for != sender) return;
  run.waits_for = kNone;
  peers_.unblock(sender);
  advance(index, now, actions);
}

// Delivers the slices that have waited for this plan. Their connections may be gone, so an error ends the exchange.
void Executor::deliver_later_slices(absl::Duration now, Actions& actions) {
  std::vector<LaterSlice> waiting = std::exchange(later_slices_, {});
  for (LaterSlice& slice : waiting) {
    if (is_of_later_plan(slice.header)) {
      later_slices_.push_back(std::move(slice));
      continue;
    }
    const absl::StatusOr<uint32_t> run = find_run(slice.header, slice.payload.size(), actions);
    if (run.ok()) {
      deliver(*run, slice.sender, std::move(slice.payload), now, actions);
    } else {
      actions.refused.Update(run.status());
    }
  }
}

}  // namespace gleaner::collective
