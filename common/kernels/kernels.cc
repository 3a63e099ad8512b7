#include "common/kernels/kernels.h"

#include <cpuid.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/kernels/float_environment.h"
#include "common/kernels/variant.h"

namespace gleaner::kernels {
namespace {

constexpr const Variant* kVariants[] = {&kScalar, &kAvx2, &kAvx512};  // best last

bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// __builtin_cpu_supports() also checks that the operating system saves the registers.
bool runs_here(const Variant* variant) {
  if (variant == &kAvx2) return __builtin_cpu_supports("avx2") && has_f16c();
  if (variant == &kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return true;
}

const BlockFunctions& blocks_of(const Variant& variant, DataType type) {
  if (is_top_k(type)) return variant.blocks.top[std::countr_zero(kept_of(type))];
  if (is_random_k(type)) return variant.blocks.random[std::countr_zero(kept_of(type))];
  if (type == kSignBlock) return variant.blocks.sign;
  return type == kInt4Block ? variant.blocks.int4 : variant.blocks.int8;
}

// Returns the function for types of which one is a block with a scale or with indexes.
SumFunction block_function_of(const Variant& variant, DataType from, DataType to) {
  if (from == kFloat32Block) return blocks_of(variant, to).from_float32s;
  return to == kFloat32Block ? blocks_of(variant, from).to_float32s : blocks_of(variant, from).sum;
}

// Returns whether an element of the type is an array of fp32.
bool has_float32s(DataType type) { return type == kFloat32Block || is_random_k(type); }

SumFunction function_of(const Variant& variant, DataType from, DataType to) {
  if (from != to) {
    if (from == DataType::kFloat16) return variant.float16_to_float32;
    if (from == DataType::kBFloat16) return variant.bfloat16_to_float32;
    return to == DataType::kFloat16 ? variant.float32_to_float16 : variant.float32_to_bfloat16;
  }
  switch (from) {
    case DataType::kFloat32:
      return variant.float32;
    case DataType::kFloat64:
      return variant.float64;
    case DataType::kFloat16:
      return variant.float16;
    case DataType::kBFloat16:
      return variant.bfloat16;
    case DataType::kInt32:
      return variant.int32;
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Kernels> Kernels::choose(absl::string_view wanted) {
  const Variant* best = nullptr;
  for (const Variant* variant : kVariants) {
    if (!wanted.empty() && wanted != variant->name) continue;
    if (runs_here(variant)) {
      best = variant;
    } else if (!wanted.empty()) {
      return absl::FailedPreconditionError(absl::StrCat("this processor can't run kernel '", wanted, "'; it can run ",
                                                        absl::StrJoin(available_variants(), ", "),
                                                        "; without a name gleaner chooses the best"));
    }
  }
  if (best == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat("unknown kernel '", wanted, "'; expected one of ",
                                                   absl::StrJoin(available_variants(), ", "),
                                                   ", or no name for the best one on this processor"));
  }
  return Kernels(best);
}

absl::string_view Kernels::name() const { return variant_->name; }

void Kernels::sum(DataType from, DataType to, std::span<const std::byte* const> sources, std::byte* result,
                  size_t elements, uint32_t divisor) const {
  const ScopedFloatEnvironment environment;
  if (is_block(from) && has_float32s(from) && from == to) {
    return variant_->float32(sources.data(), sources.size(), result, elements * size_of(from) / sizeof(float), divisor);
  }
  const SumFunction function =
      is_block(from) ? block_function_of(*variant_, from, to) : function_of(*variant_, from, to);
  function(sources.data(), sources.size(), result, elements, divisor);
}

void Kernels::encode(DataType to, const BlockSource& source, std::byte* blocks) const {
  const ScopedFloatEnvironment environment;
  blocks_of(*variant_, to).encode(source, blocks);
}

void Kernels::decode(DataType from, const std::byte* blocks, const BlockTarget& target) const {
  const ScopedFloatEnvironment environment;
  blocks_of(*variant_, from).decode(target, blocks);
}

void Kernels::l1_norms(DataType type, const std::byte* values, size_t rows, size_t columns, float* norms) const {
  const ScopedFloatEnvironment environment;
  const NormTable& table = variant_->l1_norms;
  if (type == DataType::kFloat32) return table.float32(values, rows, columns, norms);
  if (type == DataType::kFloat64) return table.float64(values, rows, columns, norms);
  (type == DataType::kFloat16 ? table.float16 : table.bfloat16)(values, rows, columns, norms);
}

Losses Kernels::narrow(DataType to, const std::byte* source, std::byte* result, size_t elements) const {
  constexpr size_t kBlock = 4096;  // elements that are rounded and counted while they are in the first-level cache
  const bool is_float16 = to == DataType::kFloat16;
  // The largest finite values are 65504 and 2^128 - 2^120. Half of the last place above them, a tie rounds to infinity.
  // Half of the least subnormal value, a tie, rounds to zero.
  const LossLimits limits{.clipped = std::bit_cast<int32_t>(is_float16 ? 65520.0F : 0x1.FFp127F),
                          .flushed = std::bit_cast<int32_t>(is_float16 ? 0x1p-25F : 0x1p-134F),
                          .infinity = static_cast<uint16_t>(is_float16 ? 0x7C00 : 0x7F80)};
  const SumFunction round = function_of(*variant_, DataType::kFloat32, to);
  const ScopedFloatEnvironment environment;
  uint64_t counts[2] = {};
  for (size_t begin = 0; begin < elements; begin += kBlock) {
    const size_t block = std::min(kBlock, elements - begin);
    const std::byte* const from = source + begin * size_of(DataType::kFloat32);
    std::byte* const rounded = result + begin * size_of(to);
    round(&from, 1, rounded, block, 1);
    variant_->count_losses(from, rounded, block, limits, counts);
  }
  return {counts[0], counts[1]};
}

void put_back(DataType type, const std::byte* contribution, const std::byte* result, size_t values, float* residual) {
  const uint32_t kept = kept_of(type);
  const auto index_of = [](const std::byte* block, uint32_t i) {
    uint16_t index;
    std::memcpy(&index, block + i * sizeof(index), sizeof(index));
    return index;
  };
  for (size_t first = 0; first < values;
       first += kBlockValues, contribution += size_of(type), result += size_of(type)) {
    // The indexes of both blocks ascend.
    for (uint32_t own = 0, other = 0; own < kept; ++own) {
      const uint16_t index = index_of(contribution, own);
      while (other < kept && index_of(result, other) < index) ++other;
      if ((other < kept && index_of(result, other) == index) || index >= values - first) continue;
      float value;
      std::memcpy(&value, contribution + kept * sizeof(index) + own * sizeof(value), sizeof(value));
      if (std::isfinite(value)) residual[first + index] += value;
    }
  }
}

std::vector<absl::string_view> available_variants() {
  std::vector<absl::string_view> names;
  for (const Variant* variant : kVariants) {
    if (runs_here(variant)) names.push_back(variant->name);
  }
  return names;
}

}  // namespace gleaner::kernels
