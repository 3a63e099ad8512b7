// This rank's part of every push_pull: copying in, summing its slice, copying out, in pieces of bounded size. No I/O
// other than to memory; belongs to one thread.
//
// What feeds the network comes first: sums, then copies into shared memory, then copies out of it; each in the order in
// which they became possible. Once warm it allocates nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "comm-lib/local/group.h"
#include "comm-lib/local/layout.h"
#include "common/kernels/kernels.h"

namespace gleaner::local {

// Tensors whose turn has not come yet, in order: each at most once.
class Lane {
 public:
  void reserve(size_t tensors);
  bool empty() const { return size_ == 0; }
  uint32_t front() const { return ring_[head_]; }
  void push(uint32_t tensor);
  void pop();

 private:
  std::vector<uint32_t> ring_;
  size_t head_ = 0;
  size_t size_ = 0;
};

class PushPulls {
 public:
  enum class Stage : uint8_t {
    kIdle,
    kStarted,     // but the memory is not mapped yet
    kCopyingIn,   // to this rank's slot
    kReady,       // waits for REDUCE, or for RESULT if it has no slice
    kReducing,    // its slice
    kReduced,     // waits for RESULT
    kCopyingOut,  // of the sum region; nothing to copy if the network's part failed
  };
  // A stage that is over: kCopyingIn, kReducing or kCopyingOut.
  struct Finished {
    Stage stage = Stage::kIdle;
    uint32_t tensor = 0;
    uint64_t step = 0;
    ReduceOp op = ReduceOp::kSum;
    absl::Status result;  // of kCopyingOut: the push_pull's
  };

  PushPulls(uint32_t local_rank, uint32_t local_size, const kernels::Kernels* kernels);

  void add(std::span<const TensorShape> tensors);
  // The memory of the tensors of `layout` is there from now on.
  void attach(const Layout& layout, std::byte* memory);

  absl::Status start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output);
  // REDUCE and RESULT came. InvalidArgument: not expected now.
  absl::Status reduce(uint32_t tensor, uint64_t step);
  absl::Status finish(uint32_t tensor, uint64_t step, absl::Status result);

  // Works until a stage is over or `budget` (bytes to touch) is used up, of which it takes its part. Nothing if no
  // stage ended.
  std::optional<Finished> advance(size_t& budget);
  bool has_work() const;

  size_t tensors() const { return tensors_.size(); }
  size_t bytes_of(uint32_t tensor) const { return tensors_[tensor].bytes; }
  MutableBytes sum_of(uint32_t tensor) const;
  uint32_t in_flight() const { return in_flight_; }
  bool needs_others() const;  // one of those in flight is not yet at its last stage

 private:
  struct Tensor {
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Stage stage = Stage::kIdle;
    size_t bytes = 0;
    std::byte* slots = nullptr;  // of local rank 0; null: not mapped yet
    size_t area_bytes = 0;       // from there to that of rank 1, and so on to the sum
    uint64_t step = 0;
    size_t progress = 0;  // next byte of the stage's work, and its end
    size_t end = 0;
    ConstBytes input;
    MutableBytes output;
    absl::Status result;

    std::byte* slot(uint32_t rank) const { return slots + rank * area_bytes; }
  };
  enum LaneOf { kSums, kCopiesIn, kCopiesOut, kLanes };

  void enter(uint32_t tensor, Stage stage, Slice work);
  size_t piece(Tensor& tensor, size_t budget);
  Finished leave(uint32_t tensor);
  absl::Status unexpected(absl::string_view message, uint32_t tensor, uint64_t step) const;

  const uint32_t local_rank_;
  const uint32_t local_size_;
  const kernels::Kernels* const kernels_;
  std::vector<Tensor> tensors_;
  std::array<Lane, kLanes> lanes_;
  std::vector<const std::byte*> sources_;  // of the sum at hand
  uint32_t in_flight_ = 0;
};

}  // namespace gleaner::local
