// Requests holds this rank's requests, which are its parts of push_pulls: it copies the input in, sums its slice and
// copies the result out, in portions of bounded size. A tensor on a GPU is copied by the GPU (gpu_copies.h), one copy
// in and one copy out. There is at most one request of a tensor at a time. Belongs to one thread, and never waits. Once
// warm it allocates no memory.
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
#include "comm-lib/local/gpu_copies.h"
#include "comm-lib/local/gpu_sums.h"
#include "comm-lib/local/group.h"
#include "comm-lib/local/layout.h"
#include "comm-lib/local/segment.h"
#include "comm-lib/local/tensor_queue.h"
#include "comm-lib/local/zone_lock.h"
#include "common/base/accumulator.h"
#include "common/kernels/kernels.h"
#include "common/trace/event.h"

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
    kPlacing,     // copies its slice of the result to its zone
    kPlaced,      // waits for GATHER
    kCopyingOut,  // from the result's memory; copies nothing if the network's part failed
  };
  // A stage that has ended: kCopyingIn, kReducing, kPlacing or kCopyingOut.
  struct Finished {
    Stage stage = Stage::kIdle;
    uint32_t tensor = 0;
    uint64_t step = 0;
    ReduceOp op = ReduceOp::kSum;
    bool by_gpu = false;  // of kCopyingIn: the input is in the zones
    absl::Status result;  // of kCopyingOut: the outcome of the push_pull
  };

  // `kernels` and `events` must outlive the object, which calls only those of the functions of `events` about traces.
  Requests(uint32_t local_rank, uint32_t local_size, const kernels::Kernels* kernels, Events* events);

  void add(std::span<const TensorShape> tensors);
  // Records that the memory of the tensors of `layout` is mapped by `segment`, whose file is still open.
  void attach(const Layout& layout, const Segment& segment);

  absl::Status start(uint32_t tensor, ReduceOp op, ConstBytes input, MutableBytes output,
                     const device::Access& access = {});
  // Handle COPY, REDUCE, RESULT and GATHER. InvalidArgument: the message is not expected at this stage or step.
  absl::Status copy(uint32_t tensor, uint64_t step);
  absl::Status reduce(uint32_t tensor, uint64_t step, bool by_gpu);
  absl::Status finish(uint32_t tensor, uint64_t step, absl::Status result, bool by_gpu);
  absl::Status gather(uint32_t tensor, uint64_t step);

  // Works until a stage has ended, `budget` is used up or no work is left. Returns the stage that has ended, if one
  // has. `budget` is in bytes of memory to touch; the bytes touched are subtracted from it.
  std::optional<Finished> advance(size_t& budget);
  bool has_work() const;

  // Sums on GPUs; see GpuSums' functions of the same names. can_sum_on_gpu() is for a rank that has started a tensor on
  // a GPU, and tells why not.
  bool has_gpu() const { return gpu_.device() != nullptr; }
  absl::Status can_sum_on_gpu(size_t most_bytes, ConstBytes image);
  absl::StatusOr<device::SharedMemory> offer(uint32_t batch);
  absl::Status open(uint32_t batch, uint32_t owner, const device::SharedMemory& zone);
  bool is_open(uint32_t batch) const { return sums_->is_open(batch); }
  void use(uint32_t batch) { sums_->use(batch); }
  // Returns the batches whose memory is mapped, by their first tensors.
  std::span<const uint32_t> batches() const { return batches_; }

  // Becomes readable when take_copies() has something to do; -1: no tensor was on a GPU.
  int copies_descriptor() const { return gpu_.descriptor(); }
  // Lets advance() end the stages whose copies by the GPU have ended. An error, also of a copy that could not begin,
  // means that the group can't go on.
  absl::Status take_copies();
  // Marks the work of GPUs that was queued, for a group that fails (device::Access::copied).
  void mark_copies();
  // Ends all use of the shared memory by the GPU. False: the memory must stay mapped, see GpuCopies::close().
  // `has_failed`: other ranks may still write to the zones; their memory is freed after that (zone_lock.h).
  bool close(bool has_failed);

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
    uint32_t batch = 0;   // the first tensor of those that were registered together
    bool by_gpu = false;  // the input goes to the zones
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
    device::Access access;
    absl::Status result;

    std::byte* slot(uint32_t rank) const { return slots + rank * slot_distance; }
    // Returns the byte of the partial sum that belongs to byte `at` of a slot, the first byte of an element.
    size_t in_sum(size_t at) const { return at / size_of(type) * size_of(accumulator_of(type)); }
  };
  enum WorkKind { kSums, kCopiesIn, kCopiesOut, kWorkKinds };

  void enter(uint32_t tensor, Stage stage, Slice work);
  absl::Status work_by_gpu(uint32_t tensor);
  void tell_begin(uint32_t tensor);
  void tell(uint32_t tensor, trace::Kind point) const {
    if (events_->traces_gpu()) events_->on_gpu(tensor, point);
  }
  size_t do_portion(Tensor& tensor, size_t budget);
  Finished leave(uint32_t tensor);
  bool is_at(uint32_t tensor, uint64_t step, Stage stage) const;
  absl::Status unexpected(absl::string_view message, uint32_t tensor, uint64_t step) const;

  const uint32_t local_rank_;
  const uint32_t local_size_;
  const kernels::Kernels* const kernels_;
  Events* const events_;
  std::vector<Tensor> tensors_;
  std::array<TensorQueue, kWorkKinds> queues_;
  std::vector<const std::byte*> sources_;  // of the sum being made, by rank
  uint32_t in_flight_ = 0;
  std::vector<uint32_t> batches_;
  GpuCopies gpu_;
  std::unique_ptr<GpuSums> sums_;                                  // null: can_sum_on_gpu() was not called
  absl::StatusOr<std::shared_ptr<ZoneLock>> zone_lock_ = nullptr;  // null: no memory is mapped yet
  std::vector<uint64_t> copied_;                                   // tensors whose copies by the GPU have ended
  absl::Status gpu_failure_;
};

}  // namespace gleaner::local
