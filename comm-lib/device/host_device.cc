#include "comm-lib/device/host_device.h"

#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "comm-lib/device/completions.h"
#include "common/base/status_macros.h"

namespace gleaner::device {
namespace {

constexpr size_t kPageBytes = 4096;

class HostEvent final : public Event {
 public:
  HostEvent() : Event(Place{}) {}
  absl::StatusOr<bool> is_done() const override { return recorded_; }
  void mark() { recorded_ = true; }
};

absl::Status mark(Event& event) {
  GLN_RETURN_IF_ERROR(check_place(event, Place{}));
  static_cast<HostEvent&>(event).mark();
  return absl::OkStatus();
}

class HostStream final : public Stream {
 public:
  absl::Status copy_to_host(Address from, MutableBytes to) override {
    if (!to.empty()) std::memcpy(to.data(), reinterpret_cast<const void*>(from), to.size());
    return absl::OkStatus();
  }
  absl::Status copy_to_device(ConstBytes from, Address to) override {
    if (!from.empty()) std::memcpy(reinterpret_cast<void*>(to), from.data(), from.size());
    return absl::OkStatus();
  }
  absl::Status copy_on_device(Address from, Address to, size_t bytes) override {
    if (bytes > 0) std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return absl::OkStatus();
  }
  absl::Status record(Event& event) override { return mark(event); }
  absl::Status wait_for(const Event& event) override { return check_recorded(event, Place{}); }
  absl::Status notify(Completions& completions, uint64_t tag) override {
    Completions::arrive(completions.expect(tag));
    return absl::OkStatus();
  }
  absl::Status check() const override { return absl::OkStatus(); }
};

absl::Status check_stream(CallerStream stream) {
  if (stream == CallerStream{}) return absl::OkStatus();
  return absl::InvalidArgumentError("a CUDA stream was given for a tensor in host memory; pass stream 0");
}

absl::StatusOr<void*> allocate_pages(size_t bytes) {
  void* memory = std::aligned_alloc(kPageBytes, (bytes + kPageBytes - 1) / kPageBytes * kPageBytes);
  if (memory == nullptr) return absl::ResourceExhaustedError(absl::StrCat("can't allocate ", bytes, " bytes"));
  return memory;
}

absl::Status not_shared() { return absl::UnimplementedError("memory of the host is not shared by handles"); }

class HostDevice final : public Device {
 public:
  HostDevice() : Device({.place = Place{}, .name = "host", .has_host_visible_memory = true}) {}

  absl::StatusOr<std::unique_ptr<PinnedMemory>> allocate_pinned(size_t bytes) override {
    GLN_ASSIGN_OR_RETURN(void* const memory, allocate_pages(bytes));
    return std::make_unique<PinnedMemory>(MutableBytes(static_cast<std::byte*>(memory), bytes),
                                          [memory] { std::free(memory); });
  }
  absl::StatusOr<std::unique_ptr<PinnedMemory>> pin(MutableBytes memory) override {
    return std::make_unique<PinnedMemory>(memory, [] {});
  }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) override {
    GLN_ASSIGN_OR_RETURN(void* const memory, allocate_pages(bytes));
    return std::make_unique<DeviceMemory>(Address{reinterpret_cast<uintptr_t>(memory)}, bytes,
                                          [memory] { std::free(memory); });
  }
  absl::StatusOr<SharedMemory> share(const DeviceMemory&) override { return not_shared(); }
  absl::StatusOr<std::unique_ptr<DeviceMemory>> open_shared(const SharedMemory&, size_t) override {
    return not_shared();
  }
  absl::StatusOr<std::unique_ptr<Stream>> create_stream(Priority) override { return std::make_unique<HostStream>(); }
  absl::StatusOr<std::unique_ptr<Event>> create_event() override { return std::make_unique<HostEvent>(); }
  absl::Status record(CallerStream stream, Event& event) override {
    GLN_RETURN_IF_ERROR(check_stream(stream));
    return mark(event);
  }
  absl::Status hold(CallerStream stream, const Event& event) override {
    GLN_RETURN_IF_ERROR(check_stream(stream));
    return check_recorded(event, Place{});
  }
};

}  // namespace

std::unique_ptr<Device> open_host_device() { return std::make_unique<HostDevice>(); }

}  // namespace gleaner::device
