// execute() runs a schedule in one process, with the schedule's own summation order. So the bits that a job must
// produce with this schedule are known. Pure.
//
// Rounding. Vectors *travel* in one data type and end in another, or in the same.
// - A receive-reduce adds the received element to the rank's own, in the accumulator's type of the data type that
//   travels: fp32 for fp32, fp16 and bf16; fp64 for fp64; int32 with wrap-around for int32. It then rounds the sum to
//   the data type that travels, to nearest even. So fp16 and bf16 values that travel in their own type are rounded
//   after each receive-reduce.
// - At the end each rank divides its element by the divisor, in the accumulator's type, and rounds once to the result's
//   data type. So fp16 and bf16 sums that travel as fp32 partial sums are rounded only there.
// - After an all-gather each rank adds all contributions in rank order, in the accumulator's type, divides and rounds
//   once.
// - A NaN that an addition, the division or the last rounding returns is the canonical quiet NaN
//   (common/kernels/kernels.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/collective/schedule.h"

namespace gleaner::collective {

// The data types and the divisor of an all-reduce.
struct Reduction {
  DataType travels = DataType::kFloat32;  // the type of inputs and messages
  DataType result = DataType::kFloat32;   // the same type, or fp16 or bf16 if fp32 travels
  uint32_t divisor = 1;                   // 1: a sum, and the only value for int32
};

// Returns each rank's vector after the schedule. `inputs` has one vector for each rank, all of one size. The result
// follows from the programs alone: each rank's elements change only by its own receives, in their order.
// InvalidArgument: the inputs or the data types do not fit, or what Messages::make() and Messages::run() check
// (messages.h). Does not check that the schedule is an all-reduce.
absl::StatusOr<std::vector<std::vector<std::byte>>> execute(const Schedule& schedule, const Reduction& reduction,
                                                            std::vector<std::vector<std::byte>> inputs);

// Does the same for sums of fp32.
absl::StatusOr<std::vector<std::vector<float>>> execute(const Schedule& schedule,
                                                        const std::vector<std::vector<float>>& inputs);

}  // namespace gleaner::collective
