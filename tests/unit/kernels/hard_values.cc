#include "tests/unit/kernels/hard_values.h"

#include <cstring>

namespace gleaner::kernels {

std::vector<uint64_t> hard_values(DataType type) {
  switch (type) {
    case DataType::kFloat64:
      return {0x7FF8000000000000, 0x7FF0000000000001, 0xFFF8000000000000, 0xFFF4567812345678, 0x7FF0000000000000,
              0xFFF0000000000000, 0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x0010000000000000, 0,
              0x8000000000000000, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x3FF0000000000000, 0x3CA0000000000000};
    case DataType::kFloat16:
      return {0x7E00, 0x7C01, 0xFE00, 0xFDFF, 0x7C00, 0xFC00, 0x0001, 0x8001, 0x03FF, 0x83FF, 0x0400,
              0x0000, 0x8000, 0x7BFF, 0xFBFF, 0x3C00, 0x1000, 0x9000, 0x6800, 0x4C00, 0xCC00};
    case DataType::kBFloat16:
      return {0x7FC0, 0x7F81, 0xFFC0, 0xFFBF, 0x7F80, 0xFF80, 0x0001, 0x8001, 0x007F, 0x807F, 0x0080,
              0x0000, 0x8000, 0x7F7F, 0xFF7F, 0x3F80, 0x3B80, 0xBB80, 0x4380, 0x7B00, 0xFB00};
    default:
      return {0x7FC00000, 0x7F800001, 0xFFC00000, 0xFFA12345, 0x7F800000, 0xFF800000, 0x00000001,
              0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x00000000, 0x80000000, 0x7F7FFFFF,
              0xFF7FFFFF, 0x3F800000, 0x33800000, 0xB3800000, 0x4B800000, 0x7FFFFFFF, 0xFFFFFFFF};
  }
}

void fill(DataType type, MutableBytes bytes, std::mt19937_64& random) {
  const std::vector<uint64_t> hard = hard_values(type);
  const size_t size = size_of(type);
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    const uint64_t draw = random();
    const uint64_t value = (draw & 1) != 0 ? hard[(draw >> 1) % hard.size()] : draw >> 1;
    std::memcpy(bytes.data() + at, &value, size);
  }
}

}  // namespace gleaner::kernels
