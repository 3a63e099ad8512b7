// Requests holds this rank's requests, which are its parts of push_pulls: it copies the input in, sums its slice and
// copies the result out, in portions of bounded size. There is at most one request of a tensor at a time. No I/O except
// to memory; belongs to one thread. Once warm it allocates no memory.
//
// Work that feeds the network comes first: sums, then copies into shared memory, then copies out of it. Within each
// kind, work is done in the order in which it became possible.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/local/group.h"
#include "comm-lib/local/layout.h"
#include "comm-lib/local/tensor_queue.h"
#include "common/base/accumulator.h"
#include "common/kernels/kernels.h"

namespace gleaner::local {

class Requests {
 public:
  enum class Stage : uint8_t {
    kIdle,
    kStarted,     // waits for its memory to be mapped
    kCopyingIn,   // to this rank's slot
    kReady,       // waits for REDUCE, or for RESULT if it has no slice
    kReducing,    // sums its slice
    kReduced,     // waits for RESULT
    kCopyingOut,  // from the result's memory; copies nothing if the network's part failed
  };
  // A stage that has ended: kCopyingIn, kReducing or kCopyingOut.
  struct Finished {
    Stage stage = Stage::kIdle;
    uint32_t tensor = 0;
    uint64_t step = 0;
    ReduceOp op = ReduceOp::kSum;
    absl::Status result;  // of kCopyingOut: the outcome of the push_pull
  };

  Requests(uint32_t local_rank, uint32_t local_size, const kernels::Kernels* kernels);

  void add(std::span<const TensorShape> tensors);
  // Records that the memory of the tensors of `layout` is mapped at `memory`.
  void attach(const Layout& layout, std::byte* memory);

  absl::Status start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output);
  // Handle REDUCE and RESULT. InvalidArgument: the message is not expected at this stage or step.
  absl::Status reduce(uint32_t tensor, uint64_t step);
  absl::Status finish(uint32_t tensor, uint64_t step, absl::Status result);

  // Works until a stage has ended, `budget` is used up or no work is left. Returns the stage that has ended, if one
  // has. `budget` is in bytes of memory to touch; the bytes touched are subtracted from it.
  std::optional<Finished> advance(size_t& budget);
  bool has_work() const;

  size_t tensors() const { return tensors_.size(); }
  size_t bytes_of(uint32_t tensor) const { return tensors_[tensor].bytes; }
  const std::string& name_of(uint32_t tensor) const { return tensors_[tensor].name; }
  // Returns the partial sum over the local ranks, and the memory for the network's result.
  MutableBytes sum_of(uint32_t tensor) const;
  MutableBytes result_of(uint32_t tensor) const;
  uint32_t in_flight() const { return in_flight_; }
  bool needs_others() const;  // a push_pull in flight is not yet at its last stage

 private:
  struct Tensor {
    std::string name;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Stage stage = Stage::kIdle;
    size_t bytes = 0;
    std::byte* slots = nullptr;          // the slot of local rank 0; null: not mapped yet
    size_t slot_distance = 0;            // from one rank's slot to the next
    std::byte* sum_memory = nullptr;     // of the partial sum, of type accumulator_of(type)
    std::byte* result_memory = nullptr;  // of the network's result
    uint64_t step = 0;
    size_t progress = 0;  // next byte of the stage's work; its end is `end`
    size_t end = 0;
    ConstBytes input;
    MutableBytes output;
    absl::Status result;

    std::byte* slot(uint32_t rank) const { return slots + rank * slot_distance; }
    // Returns the byte of the partial sum that belongs to byte `at` of a slot, the first byte of an element.
    size_t in_sum(size_t at) const { return at / size_of(type) * size_of(accumulator_of(type)); }
  };
  enum WorkKind { kSums, kCopiesIn, kCopiesOut, kWorkKinds };

  void enter(uint32_t tensor, Stage stage, Slice work);
  size_t do_portion(Tensor& tensor, size_t budget);
  Finished leave(uint32_t tensor);
  absl::Status unexpected(absl::string_view message, uint32_t tensor, uint64_t step) const;

  const uint32_t local_rank_;
  const uint32_t local_size_;
  const kernels::Kernels* const kernels_;
  std::vector<Tensor> tensors_;
  std::array<TensorQueue, kWorkKinds> queues_;
  std::vector<const std::byte*> sources_;  // of the sum being made, by rank
  uint32_t in_flight_ = 0;
};

}  // namespace gleaner::local
