// What `gleaner bench push-pull` must end up with, computed on one machine: the data of every rank (bench_data.h), the
// local ranks of each worker summed and rounded to the tensor's type, then the workers in order, all by the scalar
// kernel.
//
// Works in chunks: memory is bounded, whatever the tensors' size. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/bytes.h"
#include "common/kernels/kernels.h"

namespace gleaner::cli {

// The first element of a tensor that is not as expected.
struct Mismatch {
  uint64_t element = 0;  // within the tensor
  std::string expected;  // as "0x3f800000 (1)"
  std::string got;
};

class BenchOracle {
 public:
  static absl::StatusOr<BenchOracle> make(uint64_t seed, uint32_t workers, uint32_t local_ranks);

  // The sum at `step` from element `first` on (bench_data.h), as many as `result` holds.
  void sum(DataType type, uint64_t step, uint64_t first, MutableBytes result);

  // Compares the sum of a tensor whose first element is `first`, bit for bit.
  std::optional<Mismatch> check(DataType type, uint64_t step, uint64_t first, ConstBytes got);

 private:
  BenchOracle(uint64_t seed, uint32_t workers, uint32_t local_ranks, const kernels::Kernels& scalar);
  void sum_chunk(DataType type, uint64_t step, uint64_t first, MutableBytes result);

  uint64_t seed_;
  uint32_t workers_;
  uint32_t local_ranks_;
  kernels::Kernels scalar_;
  std::vector<std::byte> memory_;             // a chunk for each worker, then one for each local rank
  std::vector<const std::byte*> of_workers_;  // into memory_
  std::vector<const std::byte*> of_local_;    // into memory_
  std::vector<std::byte> expected_;           // a chunk
};

}  // namespace gleaner::cli
