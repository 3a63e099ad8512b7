#include "comm-lib/local/gpu_sums.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
namespace {

device::Address behind(device::Address address, size_t bytes) {
  return device::Address{static_cast<uint64_t>(address) + bytes};
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuSums>> GpuSums::create(device::Device* device, device::Copier* copier, uint32_t rank,
                                                         uint32_t ranks, size_t most_bytes, ConstBytes image) {
  GLN_ASSIGN_OR_RETURN(auto kernels, device::Kernels::load(device, image));
  GLN_ASSIGN_OR_RETURN(auto sums, device::ReportingStream::open(device, &copier->completions()));
  GLN_ASSIGN_OR_RETURN(auto results, device::ReportingStream::open(device, &copier->completions()));
  return std::unique_ptr<GpuSums>(
      new GpuSums(device, copier, std::move(kernels), std::move(sums), std::move(results), rank, ranks, most_bytes));
}

GpuSums::GpuSums(device::Device* device, device::Copier* copier, std::unique_ptr<device::Kernels> kernels,
                 device::ReportingStream sums, device::ReportingStream results, uint32_t rank, uint32_t ranks,
                 size_t most_bytes)
    : device_(device),
      copier_(copier),
      kernels_(std::move(kernels)),
      sums_(std::move(sums)),
      results_(std::move(results)),
      rank_(rank),
      ranks_(ranks),
      bytes_left_(most_bytes),
      sources_(ranks) {}

absl::StatusOr<device::SharedMemory> GpuSums::offer(uint32_t batch, std::span<const TensorSize> tensors) {
  Batch made;
  made.tensors.assign(tensors.begin(), tensors.end());
  for (uint32_t owner = 0; owner < ranks_; ++owner) made.layouts.push_back(lay_out_zone(tensors, ranks_, owner));
  made.zones.resize(ranks_);
  const size_t bytes = std::max(made.layouts[rank_].bytes, kZoneAlignment);
  if (bytes > bytes_left_) {
    return absl::ResourceExhaustedError(absl::StrCat("sums on the GPU need ", bytes, " more bytes of its memory, and ",
                                                     bytes_left_, " are left of GLEANER_GPU_MEMORY"));
  }
  GLN_ASSIGN_OR_RETURN(made.zones[rank_], device_->allocate(bytes));
  GLN_ASSIGN_OR_RETURN(const device::SharedMemory shared, device_->share(*made.zones[rank_]));
  bytes_left_ -= bytes;
  batches_[batch] = std::move(made);
  return shared;
}

absl::Status GpuSums::open(uint32_t batch, uint32_t owner, const device::SharedMemory& zone) {
  Batch& found = batches_.at(batch);
  GLN_ASSIGN_OR_RETURN(found.zones[owner], device_->open_shared(zone, found.layouts[owner].bytes));
  return absl::OkStatus();
}

bool GpuSums::is_open(uint32_t batch) const {
  return std::ranges::all_of(batches_.at(batch).zones, [](const auto& zone) { return zone != nullptr; });
}

bool GpuSums::is_used(uint32_t batch) const {
  const auto found = batches_.find(batch);
  return found != batches_.end() && found->second.is_used;
}

device::Address GpuSums::Batch::slot(uint32_t owner, uint32_t rank, uint32_t tensor) const {
  const ZoneTensor& placed = layouts[owner].tensors[tensor];
  return behind(zones[owner]->address(), placed.slots + rank * placed.slot_distance);
}

// The rank's own slice stays where it is: the sum reads it from there.
absl::Status GpuSums::copy_in(uint32_t batch, uint32_t tensor, const device::Access& access, ConstBytes input,
                              WorkTags tags) {
  const Batch& found = batches_.at(batch);
  GLN_ASSIGN_OR_RETURN(device::ReportingStream* const copies, copier_->behind(access));
  if (tags.begin.has_value()) GLN_RETURN_IF_ERROR(copies->notify(*tags.begin));
  for (uint32_t owner = 0; owner < ranks_; ++owner) {
    const Slice slice = slice_of(input.size(), ranks_, owner);
    if (owner == rank_ || slice.begin == slice.end) continue;
    GLN_RETURN_IF_ERROR((*copies)->copy_on_device(behind(device::address_of(input), slice.begin),
                                                  found.slot(owner, rank_, tensor), slice.end - slice.begin));
  }
  return copies->notify(tags.end);
}

absl::Status GpuSums::sum(uint32_t batch, uint32_t tensor, ConstBytes input, MutableBytes partial_sum, WorkTags tags) {
  const Batch& found = batches_.at(batch);
  const Slice slice = slice_of(input.size(), ranks_, rank_);
  const DataType type = found.tensors[tensor].type;
  for (uint32_t rank = 0; rank < ranks_; ++rank) {
    sources_[rank] = rank == rank_ ? behind(device::address_of(input), slice.begin) : found.slot(rank_, rank, tensor);
  }
  const device::Address sum = behind(found.zones[rank_]->address(), found.layouts[rank_].tensors[tensor].sum);
  GLN_RETURN_IF_ERROR(kernels_->sum(*sums_, type, sources_, sum, (slice.end - slice.begin) / size_of(type)));
  if (tags.begin.has_value()) GLN_RETURN_IF_ERROR(sums_.notify(*tags.begin));
  GLN_RETURN_IF_ERROR(sums_->copy_to_host(sum, partial_sum));
  return sums_.notify(tags.end);
}

absl::Status GpuSums::place(uint32_t batch, uint32_t tensor, ConstBytes slice, uint64_t tag) {
  GLN_RETURN_IF_ERROR(results_->copy_to_device(slice, batches_.at(batch).slot(rank_, rank_, tensor)));
  return results_.notify(tag);
}

absl::Status GpuSums::gather(uint32_t batch, uint32_t tensor, MutableBytes output, uint64_t tag) {
  const Batch& found = batches_.at(batch);
  for (uint32_t owner = 0; owner < ranks_; ++owner) {
    const Slice slice = slice_of(output.size(), ranks_, owner);
    GLN_RETURN_IF_ERROR(results_->copy_on_device(
        found.slot(owner, owner, tensor), behind(device::address_of(output), slice.begin), slice.end - slice.begin));
  }
  return results_.notify(tag);
}

void GpuSums::mark(const device::Access& access) {
  for (device::ReportingStream* stream : {&sums_, &results_}) {
    (*stream)->wait_for(*access.copied).IgnoreError();
    (*stream)->record(*access.copied).IgnoreError();
  }
}

std::vector<std::unique_ptr<device::DeviceMemory>> GpuSums::take_own_zones() {
  std::vector<std::unique_ptr<device::DeviceMemory>> zones;
  for (auto& [batch, found] : batches_) zones.push_back(std::move(found.zones[rank_]));
  return zones;
}

}  // namespace gleaner::local
