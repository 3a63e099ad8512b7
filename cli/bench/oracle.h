// BenchOracle computes the sums that `gleaner bench push-pull` must return.
//
// The oracle generates the data of every rank (data.h), sums the local ranks of each worker in order, then sums
// the workers in order, and rounds once to the tensor's type, all with the scalar kernel. It works in chunks, so its
// memory does not depend on the size of the tensors. Use it from one thread at a time.
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

// The first wrong element of a tensor.
struct Mismatch {
  uint64_t element = 0;  // within the tensor
  std::string expected;  // for example "0x3f800000 (1)"
  std::string got;
};

// Compares two tensors of one size bit by bit. Returns the first difference; nothing if there is none.
std::optional<Mismatch> first_mismatch(DataType type, ConstBytes expected, ConstBytes got);

class BenchOracle {
 public:
  static absl::StatusOr<BenchOracle> make(uint64_t seed, uint32_t workers, uint32_t local_ranks);

  // Fills `result` with the sums of the elements from number `first` on (data.h) at `step`.
  void sum(DataType type, uint64_t step, uint64_t first, MutableBytes result);

  // Compares `got`, the sum of a tensor whose first element has the number `first`, with the expected sum, bit by bit.
  // Returns the first difference; nothing if there is none.
  std::optional<Mismatch> check(DataType type, uint64_t step, uint64_t first, ConstBytes got);

 private:
  BenchOracle(uint64_t seed, uint32_t workers, uint32_t local_ranks, const kernels::Kernels& scalar);
  void sum_chunk(DataType type, uint64_t step, uint64_t first, MutableBytes result);

  uint64_t seed_;
  uint32_t workers_;
  uint32_t local_ranks_;
  kernels::Kernels scalar_;
  std::vector<std::byte> memory_;             // one partial sum for each worker, then one chunk for each local rank
  std::vector<const std::byte*> of_workers_;  // the workers' partial sums in memory_
  std::vector<const std::byte*> of_local_;    // the local ranks' chunks in memory_
  std::vector<std::byte> expected_;           // one chunk
};

}  // namespace gleaner::cli
