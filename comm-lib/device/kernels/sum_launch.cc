#include "comm-lib/device/kernels/sum_launch.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::device {
namespace {

constexpr uint64_t kMostBlocks = 1024;

absl::Status check_address(uint64_t address, DataType type) {
  if (address % size_of(type) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("expected elements of ", name_of(type), " at a multiple of ",
                                                 size_of(type), " bytes; got address 0x", absl::Hex(address),
                                                 "; make the tensor contiguous in memory of its own"));
}

absl::Status check(const SumKernel& kernel, std::span<const Address> sources, Address result, uint32_t divisor) {
  if (sources.empty() || sources.size() > kMostSources) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected 1 to ", kMostSources, " sources of a sum, got ", sources.size()));
  }
  if (divisor == 0 || (divisor != 1 && kernel.from == DataType::kInt32)) {
    return absl::InvalidArgumentError(
        absl::StrCat("can't divide a sum of ", name_of(kernel.from), " by ", divisor, "; pass 1"));
  }
  for (const Address source : sources) {
    GLN_RETURN_IF_ERROR(check_address(static_cast<uint64_t>(source), kernel.from));
  }
  return check_address(static_cast<uint64_t>(result), kernel.to);
}

}  // namespace

std::optional<size_t> find_sum_kernel(DataType from, DataType to) {
  const SumKernel* found = std::ranges::find_if(
      kSumKernels, [&](const SumKernel& kernel) { return kernel.from == from && kernel.to == to; });
  if (found == std::end(kSumKernels)) return std::nullopt;
  return found - kSumKernels;
}

absl::StatusOr<SumArguments> sum_arguments(const SumKernel& kernel, std::span<const Address> sources, Address result,
                                           size_t elements, uint32_t divisor) {
  GLN_RETURN_IF_ERROR(check(kernel, sources, result, divisor));
  SumArguments arguments{.result = static_cast<uint64_t>(result),
                         .elements = elements,
                         .count = static_cast<uint32_t>(sources.size()),
                         .divisor = divisor};
  std::ranges::transform(sources, arguments.sources, [](Address source) { return static_cast<uint64_t>(source); });

  const uint64_t from_bytes = size_of(kernel.from);
  const uint64_t to_bytes = size_of(kernel.to);
  const uint64_t width = kVectorBytes / from_bytes;
  // The head ends where the first source is aligned. Vectors need all addresses aligned there.
  const uint64_t head = (kVectorBytes - arguments.sources[0] % kVectorBytes) % kVectorBytes / from_bytes;
  const bool are_sources_aligned =
      std::all_of(arguments.sources, arguments.sources + arguments.count,
                  [&](uint64_t source) { return (source + head * from_bytes) % kVectorBytes == 0; });
  const uint64_t result_alignment = std::min<uint64_t>(kVectorBytes, width * to_bytes);
  const bool is_result_aligned = (arguments.result + head * to_bytes) % result_alignment == 0;
  if (are_sources_aligned && is_result_aligned && head + width <= elements) {
    arguments.head = head;
    arguments.vectors = (elements - head) / width;
  }
  return arguments;
}

uint32_t blocks_of(const SumArguments& arguments) {
  // Without vectors each element is an item of its own, else at most a vector's elements before and behind the vectors.
  const uint64_t items = arguments.vectors == 0 ? arguments.elements : arguments.vectors;
  return static_cast<uint32_t>(std::clamp<uint64_t>((items + kThreadsPerBlock - 1) / kThreadsPerBlock, 1, kMostBlocks));
}

}  // namespace gleaner::device
