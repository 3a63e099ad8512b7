// execute() runs a schedule in one process, with the schedule's own summation order. So the bits that a job must
// produce with this schedule are known. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// Returns each rank's vector after the schedule. `inputs` has one vector for each rank, all of one size. Every
// receive-reduce adds the received element to the rank's own in fp32. The result follows from the programs alone: each
// rank's elements change only by its own receives, in their order. InvalidArgument: the inputs do not fit, or what
// Messages::make() and Messages::run() check (messages.h). Does not check that the schedule is an all-reduce.
absl::StatusOr<std::vector<std::vector<float>>> execute(const Schedule& schedule,
                                                        std::vector<std::vector<float>> inputs);

}  // namespace gleaner::collective
