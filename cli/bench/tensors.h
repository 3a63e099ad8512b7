// BenchTensors holds the memory of `gleaner bench push-pull`: an input and an output for every tensor, in generation
// order.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/bench/oracle.h"
#include "common/base/bytes.h"
#include "common/plan/plan.h"

namespace gleaner::cli {

// Owns page-aligned memory that is zero at first.
class AlignedBytes {
 public:
  // Errors: ResourceExhausted, with the size in the message.
  static absl::StatusOr<AlignedBytes> make(size_t size);
  std::byte* data() { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

// Returns ResourceExhausted if `bytes` exceeds the machine's memory. Without this check Linux would grant the memory
// and kill the process later.
absl::Status check_memory(uint64_t bytes);

class BenchTensors {
 public:
  static absl::StatusOr<BenchTensors> make(std::vector<plan::Tensor> tensors);

  size_t size() const { return tensors_.size(); }
  uint64_t bytes() const { return bytes_; }  // of all tensors
  const plan::Tensor& tensor(size_t index) const { return tensors_[index]; }
  MutableBytes input(size_t index) { return {input_.data() + extents_[index].offset, tensors_[index].bytes()}; }
  MutableBytes output(size_t index) { return {output_.data() + extents_[index].offset, tensors_[index].bytes()}; }

  void fill_input(uint64_t seed, uint64_t step, uint32_t rank);

  // Compares the sum of a tensor with the expected one. Returns the first difference; nothing if there is none.
  // `first`: the number of the tensor's first element, counted over all tensors.
  using Check = std::function<absl::StatusOr<std::optional<Mismatch>>(size_t tensor, uint64_t first, ConstBytes sum)>;
  // Compares all outputs. Errors: those of `check`; DataLoss, which names the first wrong tensor and element.
  absl::Status check_output(uint64_t step, const Check& check);

  // Returns the SHA-256 of all outputs, concatenated, in hexadecimal.
  absl::StatusOr<std::string> output_sha256();

 private:
  struct Extent {
    size_t offset;           // in input_ and output_
    uint64_t first_element;  // number of the tensor's first element, counted over all tensors
  };
  std::vector<plan::Tensor> tensors_;
  std::vector<Extent> extents_;
  uint64_t bytes_ = 0;
  AlignedBytes input_;
  AlignedBytes output_;
};

}  // namespace gleaner::cli
