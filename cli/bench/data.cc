#include "cli/bench/data.h"

#include <cstring>

#include "common/kernels/float_formats.h"

namespace gleaner::cli {
namespace {

// Returns (u >> 40) * 2^-23 - 1, which has 24 bits and so is exact in fp32 and fp64.
float uniform(uint64_t u) { return static_cast<float>(u >> 40) * 0x1p-23f - 1.0f; }

template <typename Stored, typename Convert>
void fill_with(uint64_t key, uint64_t first, MutableBytes bytes, Convert convert) {
  const size_t elements = bytes.size() / sizeof(Stored);
  for (size_t i = 0; i < elements; ++i) {
    const Stored stored = convert(splitmix64(key ^ (first + i)));
    std::memcpy(bytes.data() + i * sizeof(stored), &stored, sizeof(stored));
  }
}

}  // namespace

void BenchData::fill(DataType type, uint64_t first, MutableBytes bytes) const {
  switch (type) {
    case DataType::kFloat32:
      return fill_with<float>(key_, first, bytes, uniform);
    case DataType::kFloat64:
      return fill_with<double>(key_, first, bytes, [](uint64_t u) -> double { return uniform(u); });
    case DataType::kFloat16:
      return fill_with<uint16_t>(key_, first, bytes,
                                 [](uint64_t u) { return kernels::float32_to_float16(uniform(u)); });
    case DataType::kBFloat16:
      return fill_with<uint16_t>(key_, first, bytes,
                                 [](uint64_t u) { return kernels::float32_to_bfloat16(uniform(u)); });
    case DataType::kInt32:
      return fill_with<uint32_t>(key_, first, bytes, [](uint64_t u) { return static_cast<uint32_t>(u >> 32); });
  }
}

}  // namespace gleaner::cli
