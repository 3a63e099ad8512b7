// The memory of `gleaner bench push-pull`: every tensor's input and output, in generation order.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/bench_oracle.h"
#include "common/base/bytes.h"
#include "common/plan/plan.h"

namespace gleaner::cli {

// Page aligned, zero at first.
class AlignedBytes {
 public:
  // ResourceExhausted says how much was asked for.
  static absl::StatusOr<AlignedBytes> make(size_t size);
  std::byte* data() { return memory_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
};

// ResourceExhausted when `bytes` are more than the machine has: the system would end the process, not refuse.
absl::Status check_memory(uint64_t bytes);

class BenchTensors {
 public:
  static absl::StatusOr<BenchTensors> make(std::vector<plan::Tensor> tensors);

  size_t size() const { return tensors_.size(); }
  uint64_t bytes() const { return bytes_; }  // of all tensors
  const plan::Tensor& tensor(size_t index) const { return tensors_[index]; }
  MutableBytes input(size_t index) { return {input_.data() + places_[index].offset, tensors_[index].bytes()}; }
  MutableBytes output(size_t index) { return {output_.data() + places_[index].offset, tensors_[index].bytes()}; }

  void fill_input(uint64_t seed, uint64_t step, uint32_t rank);

  // DataLoss names the first tensor and element that are not as expected.
  absl::Status check_output(uint64_t step, BenchOracle& oracle);

  // Of all outputs, concatenated; in hexadecimal.
  absl::StatusOr<std::string> output_sha256();

 private:
  struct Place {
    size_t offset;           // in input_ and output_
    uint64_t first_element;  // in the count over all tensors
  };
  std::vector<plan::Tensor> tensors_;
  std::vector<Place> places_;
  uint64_t bytes_ = 0;
  AlignedBytes input_;
  AlignedBytes output_;
};

}  // namespace gleaner::cli
