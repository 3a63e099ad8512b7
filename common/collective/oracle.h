// execute() runs a schedule in one process, with the schedule's own summation order. So the bits that a job must
// produce with this schedule are known. Pure.
//
// Rounding.
// - Partial sums have the accumulator's type of the contributions (common/base/accumulator.h): fp32 for fp32, fp16 and
//   bf16; fp64 for fp64; int32 with wrap-around for int32. A receive-reduce adds the received element to the rank's
//   own.
// - A complete sum is divided by the divisor, in the accumulator's type, and rounded once to the result's type, to
//   nearest even. So fp16 and bf16 are rounded only there. A receive-copy hands out what a rank has rounded, or what
//   all ranks will round alike.
// - Blocks to which one rank contributes are copied as they are.
// - Where an all-gather takes the place of an all-reduce, each rank adds all contributions in rank order, in the
//   accumulator's type, divides and rounds once.
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

// The data types and the divisor of a sum.
struct Reduction {
  DataType contribution = DataType::kFloat32;  // of inputs
  DataType result = DataType::kFloat32;        // the same type, or fp16 or bf16 if contributions are fp32
  uint32_t divisor = 1;                        // 1: a sum, and the only value for int32
};

// Returns the result of each rank after the schedule: the blocks with which it must end (postcondition.h), one after
// the other. `inputs` has for each rank the blocks with which it begins, one after the other; all blocks have one size.
// So some ranks have an empty input or result in collectives with a root. The results follow from the programs alone:
// each rank's elements change only by its own receives, in their order. InvalidArgument: the inputs or the data types
// do not fit, or what Messages::make() and Messages::run() check (messages.h). Does not check that the schedule has its
// postcondition.
absl::StatusOr<std::vector<std::vector<std::byte>>> execute(const Schedule& schedule, const Reduction& reduction,
                                                            std::vector<std::vector<std::byte>> inputs);

// Returns the sum that each rank has after an all-reduce, or after an all-gather in the place of one, which needs the
// additions at the end. `inputs` has a vector for each rank. InvalidArgument: as execute(), or another collective.
absl::StatusOr<std::vector<std::vector<std::byte>>> execute_all_reduce(const Schedule& schedule,
                                                                       const Reduction& reduction,
                                                                       std::vector<std::vector<std::byte>> inputs);

// Does the same for sums of fp32.
absl::StatusOr<std::vector<std::vector<float>>> execute_all_reduce(const Schedule& schedule,
                                                                   const std::vector<std::vector<float>>& inputs);

}  // namespace gleaner::collective
