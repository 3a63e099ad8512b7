// GpuSums is this rank's part of the sums that local ranks make on their GPUs (docs/local-ranks.md#gpus): it copies
// slices of this rank's tensors into the zones (zone.h) of the ranks that sum them, sums the slices in its own zones in
// rank order, and copies the partial sums to the memory that the local ranks share. Results come back the same way.
// Belongs to one thread. Once warm it allocates no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm-lib/device/access.h"
#include "comm-lib/device/copier.h"
#include "comm-lib/device/kernels/kernels.h"
#include "comm-lib/device/reporting_stream.h"
#include "comm-lib/local/gpu_copies.h"
#include "comm-lib/local/zone.h"

namespace gleaner::local {

class GpuSums {
 public:
  // `device` and `copier` must outlive the object; the copier takes its tags. `most_bytes`: limit of the GPU's memory
  // for zones. `image`: as of Kernels::load(). Unimplemented: this build has no kernels.
  static absl::StatusOr<std::unique_ptr<GpuSums>> create(device::Device* device, device::Copier* copier, uint32_t rank,
                                                         uint32_t ranks, size_t most_bytes, ConstBytes image);

  // Makes this rank's zone of a batch. ResourceExhausted: the limit or the GPU's memory does not suffice.
  absl::StatusOr<device::SharedMemory> offer(uint32_t batch, std::span<const TensorSize> tensors);
  // Opens the zone of another rank, after offer(). Unimplemented: the GPUs can't reach each other's memory.
  absl::Status open(uint32_t batch, uint32_t owner, const device::SharedMemory& zone);
  // Returns whether the zones of all ranks are open.
  bool is_open(uint32_t batch) const;
  void use(uint32_t batch) { batches_.at(batch).is_used = true; }
  bool is_used(uint32_t batch) const;

  // Queues the copies of this rank's input, after the event `ready` of its access, and gives tags.end to the copier
  // at their end. `tensor` counts within the batch. tags.begin: that event is done.
  absl::Status copy_in(uint32_t batch, uint32_t tensor, const device::Access& access, ConstBytes input, WorkTags tags);
  // Queues the sum of this rank's slice, when all ranks have copied theirs, and its copy to `partial_sum`, the slice in
  // host memory. tags.begin: the sum has ended, and the copy begins.
  absl::Status sum(uint32_t batch, uint32_t tensor, ConstBytes input, MutableBytes partial_sum, WorkTags tags);
  // Queues the copy of this rank's slice of the result to its zone, in the slot of its own input.
  absl::Status place(uint32_t batch, uint32_t tensor, ConstBytes slice, uint64_t tag);
  // Queues the copies of all slices of the result to `output`, when all ranks have placed theirs.
  absl::Status gather(uint32_t batch, uint32_t tensor, MutableBytes output, uint64_t tag);

  // Makes the event of `access`, which marks the copier's work, mark the work of this object, too, if the GPU works.
  void mark(const device::Access& access);

  // Gives up this rank's zones, for a group whose other ranks may still write to them. No other call may follow.
  std::vector<std::unique_ptr<device::DeviceMemory>> take_own_zones();

 private:
  struct Batch {
    std::vector<TensorSize> tensors;
    std::vector<Zone> layouts;                                 // by rank
    std::vector<std::unique_ptr<device::DeviceMemory>> zones;  // by rank; null: not open
    bool is_used = false;

    device::Address slot(uint32_t owner, uint32_t rank, uint32_t tensor) const;
  };
  GpuSums(device::Device* device, device::Copier* copier, std::unique_ptr<device::Kernels> kernels,
          device::ReportingStream sums, device::ReportingStream results, uint32_t rank, uint32_t ranks,
          size_t most_bytes);

  device::Device* const device_;
  device::Copier* const copier_;
  const std::unique_ptr<device::Kernels> kernels_;
  device::ReportingStream sums_;
  device::ReportingStream results_;
  const uint32_t rank_;
  const uint32_t ranks_;
  size_t bytes_left_;
  std::unordered_map<uint32_t, Batch> batches_;
  std::vector<device::Address> sources_;  // of the sum being queued, by rank
};

}  // namespace gleaner::local
