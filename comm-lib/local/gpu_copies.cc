#include "comm-lib/local/gpu_copies.h"

#include <algorithm>
#include <utility>

#include "comm-lib/device/kept.h"
#include "common/base/status_macros.h"

namespace gleaner::local {
namespace {

constexpr absl::Duration kDrainTimeout = absl::Seconds(10);

}  // namespace

absl::Status GpuCopies::open(const device::Access& access) {
  if (copier_ != nullptr) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(copier_, device::Copier::create(access.device));
  device_ = access.device;
  return absl::OkStatus();
}

absl::Status GpuCopies::to_shared(const device::Access& access, ConstBytes from, MutableBytes to, WorkTags tags) {
  GLN_RETURN_IF_ERROR(pin(to));
  GLN_ASSIGN_OR_RETURN(device::ReportingStream* const stream, copier_->behind(access));
  if (tags.begin.has_value()) GLN_RETURN_IF_ERROR(stream->notify(*tags.begin));
  GLN_RETURN_IF_ERROR((*stream)->copy_to_host(device::address_of(from), to));
  return stream->notify(tags.end);
}

absl::Status GpuCopies::to_gpu(ConstBytes from, MutableBytes to, uint64_t tag) {
  return copier_->to_device(from, device::address_of(to), tag);
}

void GpuCopies::mark(const device::Access& access) { copier_->record_all(*access.copied).IgnoreError(); }

// Pins the region that has `part`.
absl::Status GpuCopies::pin(ConstBytes part) {
  const auto has_part = [part](const Region& each) {
    return each.memory.data() <= part.data() && part.data() < each.memory.data() + each.memory.size();
  };
  const auto found = std::ranges::find_if(regions_, has_part);
  if (found == regions_.end() || found->pinned != nullptr) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(found->pinned, device_->pin(found->memory));
  return absl::OkStatus();
}

bool GpuCopies::close() {
  if (copier_ == nullptr) return true;
  const bool have_ended = copier_->drain(kDrainTimeout);
  if (!have_ended) {
    device::keep(std::move(copier_));
    for (Region& each : regions_) device::keep(std::move(each.pinned));
  }
  copier_ = nullptr;
  regions_.clear();
  return have_ended;
}

}  // namespace gleaner::local
