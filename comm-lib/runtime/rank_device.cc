#include "comm-lib/runtime/rank_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/device/cuda_device.h"
#include "comm-lib/device/locate.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {
namespace {

using device::Location;
using device::MemoryKind;
using device::Place;

absl::StatusOr<Location> location_of(const device::Driver& driver, ConstBytes memory) {
  return device::locate(&driver, device::address_of(memory));
}

absl::Status check_on_gpu(const device::Driver& driver, Place place, ConstBytes memory) {
  if (memory.empty()) return absl::OkStatus();
  GLN_ASSIGN_OR_RETURN(const Location location, location_of(driver, memory));
  const bool is_managed = location.kind == MemoryKind::kManaged;  // every GPU may touch it
  if (is_managed || (location.kind == MemoryKind::kDevice && location.place == place)) return absl::OkStatus();
  const Place found = location.kind == MemoryKind::kDevice ? location.place : Place{};
  return absl::InvalidArgumentError(absl::StrCat("its memory is on ", device::name_of(found), ", not on ",
                                                 device::name_of(place),
                                                 "; input and output must be on the GPU that the call names"));
}

}  // namespace

absl::StatusOr<RankDevice::Gpu> RankDevice::open(Place place) {
  Gpu gpu;
  GLN_ASSIGN_OR_RETURN(gpu.driver, device::Driver::load());
  GLN_ASSIGN_OR_RETURN(gpu.device, device::open_cuda_device(gpu.driver, place.ordinal));
  gpu.events = std::make_unique<device::EventPool>(gpu.device.get());
  return gpu;
}

absl::StatusOr<const RankDevice::Gpu*> RankDevice::find(Place place) {
  const absl::MutexLock lock(&mutex_);
  if (!gpu_.has_value()) {
    GLN_ASSIGN_OR_RETURN(gpu_, open(place));
  }
  const Place mine = gpu_->device->info().place;
  if (mine == place) return &*gpu_;
  return absl::InvalidArgumentError(absl::StrCat(
      "it is on ", device::name_of(place), ", and this rank's tensors are on ", device::name_of(mine),
      "; a rank uses one GPU, so call torch.cuda.set_device(local_rank) first, or start one process per GPU"));
}

const RankDevice::Gpu* RankDevice::opened() const {
  const absl::MutexLock lock(&mutex_);
  return gpu_.has_value() ? &*gpu_ : nullptr;
}

// A program that has loaded no driver has no memory of a GPU, and its machine may have none.
const device::Driver* RankDevice::used_driver() {
  const absl::MutexLock lock(&mutex_);
  return gpu_.has_value() ? gpu_->driver.get() : programs_driver_.find();
}

absl::Status RankDevice::check_on_host(ConstBytes memory) {
  const device::Driver* const driver = used_driver();
  if (driver == nullptr || memory.empty()) return absl::OkStatus();
  const absl::StatusOr<Location> location = location_of(*driver, memory);
  // An error is that of a driver that the program has not started, which has given out no memory, or of a failed GPU,
  // whose requests get the error.
  if (!location.ok()) return opened() == nullptr ? absl::OkStatus() : location.status();
  if (location->kind != MemoryKind::kDevice) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "its memory is on ", device::name_of(location->place),
      "; copy it to memory of the host first, or use gln_push_pull_on_stream(), with input and output on one GPU"));
}

absl::Status RankDevice::begin(const std::optional<DeviceStream>& stream, Request& request,
                               std::unique_ptr<DeviceMarks>& marks) {
  if (!stream.has_value()) {
    GLN_RETURN_IF_ERROR(check_on_host(request.input));
    return request.output.data() == request.input.data() ? absl::OkStatus() : check_on_host(request.output);
  }
  if (stream->place.ordinal < 0) {
    return absl::InvalidArgumentError(absl::StrCat("device is ", stream->place.ordinal,
                                                   ", expected the number of a GPU; use gln_push_pull() for "
                                                   "memory of the host"));
  }
  GLN_ASSIGN_OR_RETURN(const Gpu* const gpu, find(stream->place));
  GLN_RETURN_IF_ERROR(check_on_gpu(*gpu->driver, stream->place, request.input));
  GLN_RETURN_IF_ERROR(check_on_gpu(*gpu->driver, stream->place, request.output));
  GLN_ASSIGN_OR_RETURN(device::EventPool::Loan ready, gpu->events->take());
  GLN_ASSIGN_OR_RETURN(device::EventPool::Loan copied, gpu->events->take());
  GLN_RETURN_IF_ERROR(gpu->device->record(stream->stream, *ready));
  request.access = {gpu->device.get(), stream->stream, &*ready, &*copied};
  marks.reset(new DeviceMarks{stream->stream, std::move(ready), std::move(copied)});
  return absl::OkStatus();
}

// A request that failed early has no copies, and its mark was not recorded.
absl::Status RankDevice::hold(const DeviceMarks& marks, std::optional<device::CallerStream> stream) {
  if (!marks.copied->is_recorded()) return absl::OkStatus();
  return opened()->device->hold(stream.value_or(marks.stream), *marks.copied);
}

}  // namespace gleaner::runtime
