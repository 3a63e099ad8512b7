#include "comm-lib/executor/open_runs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/executor/checks.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/differing_operations.h"

namespace gleaner::executor {

void OpenRuns::apply(std::shared_ptr<const plan::Plan> plan) {
  plan_ = std::move(plan);
  partitions_.resize(schedules_.size());
  for (uint32_t i = 0; i < schedules_.size(); ++i) {
    if (schedules_.is_used(i)) partitions_[i].resize(plan_->partitions.size());
  }
}

absl::Status OpenRuns::check_start(uint32_t schedule, uint32_t partition, ReduceOp op, absl::Status& refused) const {
  const Partition& state = partitions_[schedule][partition];
  if (state.run == kNone) return absl::OkStatus();
  const Run& run = machine_[state.run];
  const uint32_t tensor = plan_->partitions[partition].tensor;
  if (run.is_started) {
    return absl::FailedPreconditionError(
        absl::StrCat("tensor ", plan_->tensors[tensor].name, " is still in flight: wait for its last push_pull first"));
  }
  if (run.subject.op == op) return absl::OkStatus();
  absl::Status status =
      plan::differing_operations(*plan_, tensor, state.step, {worker_, op}, {run.named_by, run.subject.op});
  refused.Update(status);
  return status;
}

uint32_t OpenRuns::start(uint32_t schedule, uint32_t partition, ReduceOp op, uint32_t piece) {
  Partition& state = partitions_[schedule][partition];
  if (state.run == kNone) state.run = open(schedule, partition, state.step, op, worker_);
  machine_[state.run].piece = piece;
  return state.run;
}

uint32_t OpenRuns::open(uint32_t schedule, uint32_t partition, uint64_t step, ReduceOp op, uint32_t named_by) {
  const uint32_t id = plan_->partitions[partition].tensor;
  const plan::Tensor& tensor = plan_->tensors[id];
  const plan::Encoding types = plan_->encoding(tensor);
  const Subject subject = {id, partition - plan_->first_partition[id], schedule, step, op};
  const uint32_t run =
      machine_.open(owner_, &starts_, subject, {tensor.priority, partition}, &schedules_[schedule],
                    types.elements(plan_->partitions[partition].bytes), {types.contribution, types.result});
  machine_[run].named_by = named_by;
  return run;
}

absl::StatusOr<uint32_t*> OpenRuns::find_place(const wire::Header& header) {
  GLN_RETURN_IF_ERROR(check_subject(*plan_, schedules_, worker_, header));
  const uint32_t source = schedules_[header.schedule].source_of(header.sender);
  const bool is_slice = header.type == wire::FrameType::kSlice;
  if (is_slice && source == Program::kNone) {
    return frame_error(*plan_, worker_, header, "the schedule has no message between them");
  }
  Partition& state = partitions_[header.schedule][plan_->index_of(header.tensor, header.partition)];
  const bool is_in_flight = state.run != kNone && machine_[state.run].cursor.has_begun();
  // Slices may wait for the window of their peer, and a kAwait does not.
  const bool is_missing = is_slice && is_in_flight && machine_[state.run].cursor.expected_bytes(source) > 0;
  GLN_RETURN_IF_ERROR(check_step(*plan_, worker_, header, {state.step, is_in_flight, is_missing}));
  const bool is_early = header.step != state.step && !GLN_MUTATION("an early slice goes to the step in flight");
  return is_early ? &state.next : &state.run;
}

absl::StatusOr<uint32_t> OpenRuns::of_slice(const wire::Header& header, size_t payload_bytes, absl::Status& refused) {
  GLN_ASSIGN_OR_RETURN(uint32_t* const place, find_place(header));
  const uint32_t partition = plan_->index_of(header.tensor, header.partition);
  const uint32_t source = schedules_[header.schedule].source_of(header.sender);
  const bool is_first = *place == kNone;
  const uint32_t found = is_first ? open(header.schedule, partition, header.step, header.op, header.sender) : *place;
  const Run& run = machine_[found];
  absl::Status status = check_op(*plan_, header, run.subject.op, run.named_by);
  refused.Update(status);
  const uint64_t expected = run.cursor.expected_bytes(source);
  if (expected == 0) {
    status.Update(frame_error(*plan_, worker_, header, "the schedule has no further message between them"));
  } else {
    const DataType type = run.cursor.type_of(run.cursor.next_receive(source));
    status.Update(check_payload(*plan_, worker_, header, payload_bytes, {type, expected}));
  }
  if (!status.ok()) {
    if (is_first) machine_.close(found);
    return status;
  }
  *place = found;
  return found;
}

// Returns whether a valid kAwait comes too late: the slice that its sender has waited for is on its way, or there.
bool OpenRuns::has_ended(const wire::Header& header) const {
  const bool is_known = header.tensor < plan_->tensors.size() && schedules_.sums(header.schedule, header.tensor) &&
                        header.partition < plan_->partitions_of(header.tensor).size();
  return is_known && header.step < partitions_[header.schedule][plan_->index_of(header.tensor, header.partition)].step;
}

absl::StatusOr<uint32_t> OpenRuns::of_await(const wire::Header& header, absl::Status& refused) {
  if (has_ended(header)) return kNone;
  GLN_ASSIGN_OR_RETURN(uint32_t* const place, find_place(header));
  const uint32_t partition = plan_->index_of(header.tensor, header.partition);
  if (*place == kNone) *place = open(header.schedule, partition, header.step, header.op, header.sender);
  const absl::Status status = check_op(*plan_, header, machine_[*place].subject.op, machine_[*place].named_by);
  refused.Update(status);
  GLN_RETURN_IF_ERROR(status);
  return *place;
}

void OpenRuns::end(uint32_t run) {
  Partition& state = partitions_[machine_[run].subject.schedule][machine_[run].order.position];
  ++state.step;
  state.run = std::exchange(state.next, kNone);
  machine_.close(run);
}

void OpenRuns::clear() {
  for (std::vector<Partition>& of_schedule : partitions_) {
    for (Partition& state : of_schedule) {
      if (state.run != kNone) machine_.close(std::exchange(state.run, kNone));
      if (state.next != kNone) machine_.close(std::exchange(state.next, kNone));
    }
  }
}

uint64_t OpenRuns::steps(uint32_t partition) const {
  uint64_t steps = 0;
  for (const std::vector<Partition>& of_schedule : partitions_) {
    steps += of_schedule.empty() ? 0 : of_schedule[partition].step;
  }
  return steps;
}

}  // namespace gleaner::executor
