// Kernels sums tensors, in one pass over s sources in the given order, and takes norms.
//
// result[e] = round((((source[0][e] + source[1][e]) + source[2][e]) + ...) / divisor). Every addition and the division
// are made in the accumulator's type: fp32 for fp32, fp16 and bf16; fp64 for fp64; int32 with wrap-around for int32.
// The quotient is then converted to the result's type with one rounding to nearest even. The result usually has the
// sources' type. A *partial sum* of fp16 or bf16 sources is an fp32 result, which is not rounded; the sum of partial
// sums is a result of fp16 or bf16 from fp32 sources. Subnormals are kept. A NaN result
// is always the canonical quiet NaN (positive, payload zero), because which NaN an addition of two NaNs returns depends
// on the instruction set.
//
// There is one *variant* per instruction set. Every variant gives the same bits as the scalar one, the *oracle*.
// choose() takes the best variant that the processor can run, or the one that the caller names (from GLEANER_KERNEL or
// a flag). Kernels allocates no memory and takes no lock. Threads may share a Kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"
#include "common/kernels/block_values.h"

namespace gleaner::kernels {

struct Variant;

// The numbers of elements that lose their value when fp32 is rounded to fp16 or bf16.
struct Losses {
  uint64_t clipped = 0;  // finite values that become infinite
  uint64_t flushed = 0;  // other values than zero that become zero

  Losses& operator+=(const Losses& other) {
    clipped += other.clipped;
    flushed += other.flushed;
    return *this;
  }
  friend bool operator==(const Losses&, const Losses&) = default;
};

class Kernels {
 public:
  // `wanted` is a variant's name (scalar, avx2 or avx512), or empty for the best one here. InvalidArgument for an
  // unknown name, FailedPrecondition for a variant that this processor can't run.
  static absl::StatusOr<Kernels> choose(absl::string_view wanted);

  absl::string_view name() const;

  // Sums `elements` elements of every source (at least one) into `result` and divides by `divisor`. 1: a plain sum, and
  // the only value for int32. Sources and result need no alignment. `result` may be the same memory as one source;
  // otherwise it must not overlap any source. The caller's floating-point modes (flush-to-zero, rounding) have no
  // influence, and are restored.
  void sum(DataType type, std::span<const std::byte* const> sources, std::byte* result, size_t elements,
           uint32_t divisor) const {
    sum(type, type, sources, result, elements, divisor);
  }
  // Does the same for sources of type `from` and a result of type `to`. Either the types are the same, or one is fp16
  // or bf16 and the other fp32; then the result must not overlap any source. Blocks (common/base/data_type.h): the
  // result is of the same type, or kFloat32Block, or kInt8Block for kSignBlock; sources of kFloat32Block give results
  // of any block type but kSignBlock. Their values are added in fp32, and a sum that becomes kInt4Block is rounded at
  // random, by its bits.
  void sum(DataType from, DataType to, std::span<const std::byte* const> sources, std::byte* result, size_t elements,
           uint32_t divisor) const;

  // Rounds fp32 elements at `source` to `to`, fp16 or bf16, as sum() does with one source, and returns how many lose
  // their value.
  Losses narrow(DataType to, const std::byte* source, std::byte* result, size_t elements) const;

  // Writes the L1 norm of each of `rows` rows, which lie one after another with `columns` elements each. `type`: any
  // but int32, and no block. Magnitudes are rounded to fp32 and added in fp32 by halves: the second half of all columns
  // is added to the first half, which has the middle column of an odd number, until one column is left: [a, b, c, d, e]
  // -> [a + d, b + e, c] -> [(a + d) + c, b + e] -> the norm. Without columns the norm is 0.
  void l1_norms(DataType type, const std::byte* values, size_t rows, size_t columns, float* norms) const;

  // Writes the blocks of these values, one for kBlockValues values; the last one may have fewer. Updates the residual
  // and the momentum. Values that are not finite leave zeros in both.
  void encode(DataType to, const BlockSource& source, std::byte* blocks) const;
  // Writes the values of blocks.
  void decode(DataType from, const std::byte* blocks, const BlockTarget& target) const;

 private:
  explicit Kernels(const Variant* variant) : variant_(variant) {}
  const Variant* variant_;
};

// Adds to `residual`, by value, what each block of a contribution of top-k has at places that the result lacks.
void put_back(DataType type, const std::byte* contribution, const std::byte* result, size_t values, float* residual);

// Returns the variants that this processor can run, the oracle ("scalar") first, the best one last.
std::vector<absl::string_view> available_variants();

}  // namespace gleaner::kernels
