// Sums of tensors: one pass over s sources, in the order given, in fp32 for fp16 and bf16.
//
// result[e] = round(((source[0][e] + source[1][e]) + source[2][e]) + ... / divisor): every addition and the division in
// the accumulator's type (fp32 for fp32, fp16 and bf16; fp64 for fp64; wrap-around for int32), one rounding to nearest
// even at the end. Subnormals are kept; a NaN result is always the canonical quiet NaN (positive, payload zero), so
// that results do not depend on which instruction set met which NaN first. Every variant gives the oracle's bits.
//
// The variant is chosen when Kernels is made: the best that the processor has, or the one GLEANER_KERNEL names
// (scalar | avx2 | avx512). No allocation, no lock; a Kernels value may be shared by threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>
#include "absl/strings/string_view.h"

#include "absl/status/statusor.h"
#include "common/base/bytes.h"

namespace gleaner::kernels {

// Sums `elements` elements of every source into `result`, then divides by `divisor` (1: a plain sum; int32 takes only
// 1). Sources and result need no alignment; result may be the same memory as one source, and must not overlap
// otherwise.
using SumFunction = void (*)(std::span<const std::byte* const> sources, std::byte* result, size_t elements,
                             uint32_t divisor);

// One variant: a function per data type. Indexed by DataType.
struct Variant {
  absl::string_view name;
  SumFunction sum[6];
};

class Kernels {
 public:
  // `wanted`: a variant's name, or empty for the best one here. InvalidArgument for an unknown name,
  // FailedPrecondition for one that this processor can't run.
  static absl::StatusOr<Kernels> choose(absl::string_view wanted);

  absl::string_view name() const { return variant_->name; }
  void sum(DataType type, std::span<const std::byte* const> sources, std::byte* result, size_t elements,
           uint32_t divisor) const {
    variant_->sum[static_cast<size_t>(type)](sources, result, elements, divisor);
  }

 private:
  explicit Kernels(const Variant* variant) : variant_(variant) {}
  const Variant* variant_;
};

// The variants that this processor can run, the oracle ("scalar") first.
std::vector<absl::string_view> available_variants();

}  // namespace gleaner::kernels
