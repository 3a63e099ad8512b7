// Sums of tensors: one pass over s sources, in the order given, in fp32 for fp16 and bf16.
//
// result[e] = round(((source[0][e] + source[1][e]) + source[2][e]) + ... / divisor): every addition and the division in
// the accumulator's type (fp32 for fp32, fp16 and bf16; fp64 for fp64; wrap-around for int32), one rounding to nearest
// even at the end. Subnormals are kept; a NaN result is always the canonical quiet NaN (positive, payload zero), so
// that results do not depend on which instruction set met which NaN first. Every variant gives the oracle's bits.
//
// The variant is chosen when Kernels is made: the best that the processor has, or the one that the caller names (who
// has it from GLEANER_KERNEL or a flag). No allocation, no lock; a Kernels value may be shared by threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"

namespace gleaner::kernels {

struct Variant;

class Kernels {
 public:
  // `wanted`: a variant's name (scalar | avx2 | avx512), or empty for the best one here. InvalidArgument for an
  // unknown name, FailedPrecondition for one that this processor can't run.
  static absl::StatusOr<Kernels> choose(absl::string_view wanted);

  absl::string_view name() const;

  // Sums `elements` elements of every source (at least one) into `result`, then divides by `divisor` (1: a plain sum;
  // int32 takes only 1). Sources and result need no alignment; result may be the same memory as one source, and must
  // not overlap otherwise. The caller's floating-point modes (flush to zero, rounding) don't count and are unchanged
  // afterwards.
  void sum(DataType type, std::span<const std::byte* const> sources, std::byte* result, size_t elements,
           uint32_t divisor) const;

 private:
  explicit Kernels(const Variant* variant) : variant_(variant) {}
  const Variant* variant_;
};

// The variants that this processor can run, the oracle ("scalar") first, the best one last.
std::vector<absl::string_view> available_variants();

}  // namespace gleaner::kernels
