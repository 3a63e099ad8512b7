// Functions that check frames from other workers against the plan, and make the errors about them. Each error names
// both workers. Pure.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "comm-lib/executor/schedules.h"
#include "common/plan/plan.h"
#include "common/wire/frame.h"

namespace gleaner::executor {

// Returns InvalidArgument: "worker/2 sent SLICE 17 of tensor conv1.weight partition 3 step 12 to worker/1; " and then
// `problem`. `worker`: the receiver.
absl::Status frame_error(const plan::Plan& plan, uint32_t worker, const wire::Header& header,
                         absl::string_view problem);

// Checks that this is a kSlice, kArrived or kAwait of this job from `sender`, which is another worker than `worker`.
absl::Status check_sender(const plan::Plan& plan, uint64_t job, uint32_t worker, uint32_t sender,
                          const wire::Header& header);

// Checks that the plan has the tensor and partition of a kSlice or kAwait, that its schedule sums the tensor in this or
// an earlier plan, and that it has an op that tensors with a schedule can have.
absl::Status check_subject(const plan::Plan& plan, const Schedules& schedules, uint32_t worker,
                           const wire::Header& header);

// The type and size of the next slice from its sender, as the schedule says.
struct ExpectedPayload {
  DataType type = DataType::kFloat32;
  uint64_t bytes = 0;
};
absl::Status check_payload(const plan::Plan& plan, uint32_t worker, const wire::Header& header, size_t payload_bytes,
                           const ExpectedPayload& expected);

// The progress of the receiver of a slice, in the slice's partition and schedule.
struct Progress {
  uint64_t step = 0;          // number of push_pulls that have ended
  bool is_in_flight = false;  // this worker has begun the next one
  bool is_missing = false;    // that one still needs slices of the sender
};
// Checks that the slice belongs to the push_pull in flight, or to the one after it, for which its sender may be ahead.
absl::Status check_step(const plan::Plan& plan, uint32_t worker, const wire::Header& header, const Progress& progress);

// Checks that the slice has the op that `named_by`, a worker, has asked for. Workers that ask for different ops can't
// go on, whichever connection they use.
absl::Status check_op(const plan::Plan& plan, const wire::Header& header, ReduceOp op, uint32_t named_by);

}  // namespace gleaner::executor
