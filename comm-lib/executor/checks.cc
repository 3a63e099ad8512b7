#include "comm-lib/executor/checks.h"

#include "absl/strings/str_cat.h"
#include "common/plan/differing_operations.h"

namespace gleaner::executor {

absl::Status frame_error(const plan::Plan& plan, uint32_t worker, const wire::Header& header,
                         absl::string_view problem) {
  const std::string tensor =
      header.tensor < plan.tensors.size() ? plan.tensors[header.tensor].name : absl::StrCat(header.tensor);
  std::string what;
  if (header.type == wire::FrameType::kSlice) absl::StrAppend(&what, " ", header.sequence);
  if (header.type != wire::FrameType::kArrived) {
    absl::StrAppend(&what, " of tensor ", tensor, " partition ", header.partition, " step ", header.step,
                    " of schedule ", header.schedule);
  }
  return absl::InvalidArgumentError(absl::StrCat(plan.member_name(header.sender), " sent ", wire::name_of(header.type),
                                                 what, " to ", plan.member_name(worker), "; ", problem));
}

absl::Status check_sender(const plan::Plan& plan, uint64_t job, uint32_t worker, uint32_t sender,
                          const wire::Header& header) {
  if (header.job != job || header.sender != sender || sender >= plan.workers || sender == worker) {
    return absl::InvalidArgumentError(absl::StrCat(
        plan.member_name(worker), " expected a frame of job ", job, " from member ", sender, ", another of the ",
        plan.workers, " workers; got one of job ", header.job, " from member ", header.sender));
  }
  if (!wire::is_of_schedule(header.type)) {
    return frame_error(plan, worker, header, "expected SLICE, ARRIVED or AWAIT");
  }
  return absl::OkStatus();
}

absl::Status check_subject(const plan::Plan& plan, const Schedules& schedules, uint32_t worker,
                           const wire::Header& header) {
  const auto error = [&](absl::string_view problem) { return frame_error(plan, worker, header, problem); };
  if (header.tensor >= plan.tensors.size() || header.partition >= plan.partitions_of(header.tensor).size()) {
    return error(absl::StrCat("the plan of epoch ", plan.epoch, " has no such partition"));
  }
  const plan::Tensor& tensor = plan.tensors[header.tensor];
  if (!schedules.sums(header.schedule, header.tensor)) {
    return error(absl::StrCat("no plan up to epoch ", plan.epoch, " sums the tensor by schedule ", header.schedule));
  }
  const bool has_op =
      header.op == ReduceOp::kSum || (header.op == ReduceOp::kAverage && tensor.type != DataType::kInt32);
  if (!has_op) {
    return error(absl::StrCat("its op is ", name_of(header.op), ", which tensors of ", name_of(tensor.type),
                              " with a schedule don't have"));
  }
  return absl::OkStatus();
}

absl::Status check_payload(const plan::Plan& plan, uint32_t worker, const wire::Header& header, size_t payload_bytes,
                           const ExpectedPayload& expected) {
  if (header.data_type != expected.type) {
    return frame_error(plan, worker, header,
                       absl::StrCat("it is ", name_of(header.data_type), ", expected ", name_of(expected.type)));
  }
  if (payload_bytes == expected.bytes && header.payload_bytes == expected.bytes) return absl::OkStatus();
  return frame_error(
      plan, worker, header,
      absl::StrCat("it has ", payload_bytes, " bytes (header: ", header.payload_bytes, "), expected ", expected.bytes));
}

absl::Status check_step(const plan::Plan& plan, uint32_t worker, const wire::Header& header, const Progress& progress) {
  const auto error = [&](const std::string& problem) { return frame_error(plan, worker, header, problem); };
  if (header.step < progress.step) return error(absl::StrCat("this worker has ended the steps before ", progress.step));
  if (header.step == progress.step) return absl::OkStatus();
  if (header.step > progress.step + 1 || !progress.is_in_flight) {
    return error(absl::StrCat("that sum needs this worker's contributions, and this worker ",
                              progress.is_in_flight ? "is in" : "has not begun", " step ", progress.step));
  }
  if (!progress.is_missing) return absl::OkStatus();
  return error(absl::StrCat("expected the remaining slices of step ", progress.step, " first"));
}

absl::Status check_op(const plan::Plan& plan, const wire::Header& header, ReduceOp op, uint32_t named_by) {
  if (op == header.op) return absl::OkStatus();
  return plan::differing_operations(plan, header.tensor, header.step, {header.sender, header.op}, {named_by, op});
}

}  // namespace gleaner::executor
