#include "comm-lib/device/kernels/kernels.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "comm-lib/device/kernels/cuda_kernels.h"
#include "comm-lib/device/kernels/host_kernels.h"
#include "comm-lib/device/kernels/sum_launch.h"
#include "common/base/status_macros.h"

namespace gleaner::device {

absl::StatusOr<std::unique_ptr<Kernels>> Kernels::load(Device* device, ConstBytes image) {
  if (device->info().place.is_host()) return load_host_kernels();
  return load_cuda_kernels(*device, image);
}

absl::Status Kernels::sum(Stream& stream, DataType from, DataType to, std::span<const Address> sources, Address result,
                          size_t elements, uint32_t divisor) {
  const std::optional<size_t> kernel = find_sum_kernel(from, to);
  if (!kernel.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("can't sum ", name_of(from), " to ", name_of(to), "; sum to ", name_of(accumulator_of(from))));
  }
  GLN_ASSIGN_OR_RETURN(SumArguments arguments, sum_arguments(kSumKernels[*kernel], sources, result, elements, divisor));
  return elements == 0 ? absl::OkStatus() : launch(stream, *kernel, arguments);
}

}  // namespace gleaner::device
