// Functions that decide how a sum runs on a GPU: which kernel of sum.cu, with which arguments, in how many blocks.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/kernels/sum_arguments.h"
#include "common/base/bytes.h"

namespace gleaner::device {

struct SumKernel {
  DataType from;  // of the sources
  DataType to;    // of the result
  const char* name;
};

inline constexpr SumKernel kSumKernels[] = {
    {DataType::kFloat32, DataType::kFloat32, "gleaner_sum_float32"},
    {DataType::kFloat64, DataType::kFloat64, "gleaner_sum_float64"},
    {DataType::kFloat16, DataType::kFloat16, "gleaner_sum_float16"},
    {DataType::kBFloat16, DataType::kBFloat16, "gleaner_sum_bfloat16"},
    {DataType::kInt32, DataType::kInt32, "gleaner_sum_int32"},
    {DataType::kFloat16, DataType::kFloat32, "gleaner_sum_float16_to_float32"},
    {DataType::kBFloat16, DataType::kFloat32, "gleaner_sum_bfloat16_to_float32"},
    {DataType::kFloat32, DataType::kFloat16, "gleaner_sum_float32_to_float16"},
    {DataType::kFloat32, DataType::kBFloat16, "gleaner_sum_float32_to_bfloat16"},
};

// Returns the index in kSumKernels; nullopt: sources of type `from` have no sum of type `to`.
std::optional<size_t> find_sum_kernel(DataType from, DataType to);

// Returns the arguments of the kernel for these types. InvalidArgument: there are no or more than kMostSources sources,
// an address is not a multiple of its type's size, or integers are to be divided.
absl::StatusOr<SumArguments> sum_arguments(const SumKernel& kernel, std::span<const Address> sources, Address result,
                                           size_t elements, uint32_t divisor);

// Returns the number of blocks of kThreadsPerBlock threads. More blocks than a GPU runs at once would take it longer
// from the program's own kernels, and make nothing faster: a thread sums many elements.
uint32_t blocks_of(const SumArguments& arguments);

}  // namespace gleaner::device
