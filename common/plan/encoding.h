// Encoding says in which types the elements of a tensor travel.
//
// The size of a part of a tensor on its way follows from the number of its elements: as a contribution, as a partial
// sum and as a result it may have three different sizes. A plan counts a tensor's bytes as those of its results.
#pragma once

#include <cstdint>

#include "common/base/bytes.h"

namespace gleaner::plan {

struct Encoding {
  DataType contribution = DataType::kFloat32;  // of the contributions of workers
  DataType partial = DataType::kFloat32;       // of partial sums, which travel between the workers of a schedule
  DataType result = DataType::kFloat32;        // of complete sums

  // Return the size, as contributions or as partial sums, of the elements whose results have `result_bytes` bytes.
  uint64_t contribution_bytes(uint64_t result_bytes) const { return elements(result_bytes) * size_of(contribution); }
  uint64_t partial_bytes(uint64_t result_bytes) const { return elements(result_bytes) * size_of(partial); }
  uint64_t elements(uint64_t result_bytes) const { return result_bytes / size_of(result); }

  friend bool operator==(const Encoding&, const Encoding&) = default;
};

}  // namespace gleaner::plan
