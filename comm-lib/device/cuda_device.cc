#include "comm-lib/device/cuda_device.h"

#include <array>
#include <bit>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "comm-lib/device/completions.h"
#include "comm-lib/device/cuda_context.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace gleaner::device {
namespace {

using Context = std::shared_ptr<const CudaContext>;

CUstream stream_of(CallerStream stream) { return reinterpret_cast<CUstream>(stream); }

class CudaEvent final : public Event {
 public:
  CudaEvent(Context context, CUevent event) : Event(context->place()), context_(std::move(context)), event_(event) {}
  ~CudaEvent() override {
    const CudaContext::Current current(*context_);
    if (current.status().ok()) context_->api().cuEventDestroy(event_);
  }

  absl::StatusOr<bool> is_done() const override {
    if (!recorded_) return false;
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    const CUresult result = context_->api().cuEventQuery(event_);
    if (result == CUDA_ERROR_NOT_READY) return false;
    GLN_RETURN_IF_ERROR(context_->check(result, "see whether an event is done"));
    return true;
  }

  // For `stream` of this event's device, with its context current.
  absl::Status record(CUstream stream) {
    GLN_RETURN_IF_ERROR(context_->check(context_->api().cuEventRecord(event_, stream), "record an event on a stream"));
    recorded_ = true;
    return absl::OkStatus();
  }
  absl::Status hold(CUstream stream) const {
    return context_->check(context_->api().cuStreamWaitEvent(stream, event_, 0), "make a stream wait for an event");
  }

 private:
  const Context context_;
  const CUevent event_;
};

// Returns an error if a CUDA graph is captured on a stream of the caller. Without it, waiting for an event of that
// stream would take our stream into the capture (cuStreamBeginCapture), and its copies would not happen now.
absl::Status check_not_capturing(const CudaContext& context, CUstream stream) {
  const CudaContext::Current current(context);
  GLN_RETURN_IF_ERROR(current.status());
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = context.api().cuStreamIsCapturing(stream, &status);
  if (result == CUDA_SUCCESS && status != CU_STREAM_CAPTURE_STATUS_NONE) result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return context.check(result, "use a stream of the caller");
}

absl::Status record_on(const CudaContext& context, CUstream stream, Event& event) {
  GLN_RETURN_IF_ERROR(check_place(event, context.place()));
  const CudaContext::Current current(context);
  GLN_RETURN_IF_ERROR(current.status());
  return static_cast<CudaEvent&>(event).record(stream);
}

absl::Status hold_until(const CudaContext& context, CUstream stream, const Event& event) {
  GLN_RETURN_IF_ERROR(check_recorded(event, context.place()));
  const CudaContext::Current current(context);
  GLN_RETURN_IF_ERROR(current.status());
  return static_cast<const CudaEvent&>(event).hold(stream);
}

class CudaStream final : public Stream {
 public:
  CudaStream(Context context, CUstream stream) : context_(std::move(context)), stream_(stream) {}
  ~CudaStream() override {
    const CudaContext::Current current(*context_);
    if (current.status().ok()) context_->api().cuStreamDestroy(stream_);
  }

  absl::Status copy_to_host(Address from, MutableBytes to) override {
    if (to.empty()) return absl::OkStatus();
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    return context_->check(
        context_->api().cuMemcpyDtoHAsync(to.data(), static_cast<CUdeviceptr>(from), to.size(), stream_),
        "copy from the GPU to the host");
  }
  absl::Status copy_to_device(ConstBytes from, Address to) override {
    if (from.empty()) return absl::OkStatus();
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    return context_->check(
        context_->api().cuMemcpyHtoDAsync(static_cast<CUdeviceptr>(to), from.data(), from.size(), stream_),
        "copy from the host to the GPU");
  }
  absl::Status copy_on_device(Address from, Address to, size_t bytes) override {
    if (bytes == 0) return absl::OkStatus();
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    return context_->check(
        context_->api().cuMemcpyDtoDAsync(static_cast<CUdeviceptr>(to), static_cast<CUdeviceptr>(from), bytes, stream_),
        "copy between GPUs");
  }
  absl::Status record(Event& event) override { return record_on(*context_, stream_, event); }
  absl::Status wait_for(const Event& event) override { return hold_until(*context_, stream_, event); }

  absl::Status notify(Completions& completions, uint64_t tag) override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    void* entry = completions.expect(tag);
    const CUresult result = context_->api().cuLaunchHostFunc(stream_, &Completions::arrive, entry);
    if (result != CUDA_SUCCESS) completions.cancel(entry);
    return context_->check(result, "have a stream tell its progress");
  }

  absl::Status check() const override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    const CUresult result = context_->api().cuStreamQuery(stream_);
    if (result == CUDA_ERROR_NOT_READY) return absl::OkStatus();
    return context_->check(result, "use the GPU");
  }

  CUstream handle() const { return stream_; }
  Place place() const { return context_->place(); }

 private:
  const Context context_;
  const CUstream stream_;
};

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceInfo info, Context context) : Device(std::move(info)), context_(std::move(context)) {}

  absl::StatusOr<std::unique_ptr<PinnedMemory>> allocate_pinned(size_t bytes) override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    void* memory = nullptr;
    // All contexts of the process may use portable memory.
    const CUresult result = context_->api().cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (result != CUDA_SUCCESS) return context_->check(result, absl::StrCat("pin ", bytes, " bytes of host memory"));
    return std::make_unique<PinnedMemory>(MutableBytes(static_cast<std::byte*>(memory), bytes),
                                          [memory, context = context_] {
                                            const CudaContext::Current inside(*context);
                                            if (inside.status().ok()) context->api().cuMemFreeHost(memory);
                                          });
  }

  absl::StatusOr<std::unique_ptr<PinnedMemory>> pin(MutableBytes memory) override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    const CUresult result =
        context_->api().cuMemHostRegister(memory.data(), memory.size(), CU_MEMHOSTREGISTER_PORTABLE);
    if (result != CUDA_SUCCESS) return context_->check(result, absl::StrCat("pin ", memory.size(), " shared bytes"));
    return std::make_unique<PinnedMemory>(memory, [memory, context = context_] {
      const CudaContext::Current inside(*context);
      if (inside.status().ok()) context->api().cuMemHostUnregister(memory.data());
    });
  }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    CUdeviceptr address = 0;
    const CUresult result = context_->api().cuMemAlloc(&address, bytes);
    if (result != CUDA_SUCCESS) return context_->check(result, absl::StrCat("allocate ", bytes, " bytes of the GPU"));
    return std::make_unique<DeviceMemory>(Address{address}, bytes, [address, context = context_] {
      const CudaContext::Current inside(*context);
      if (inside.status().ok()) context->api().cuMemFree(address);
    });
  }

  absl::StatusOr<SharedMemory> share(const DeviceMemory& memory) override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    CUipcMemHandle handle{};
    GLN_RETURN_IF_ERROR(
        context_->check(context_->api().cuIpcGetMemHandle(&handle, static_cast<CUdeviceptr>(memory.address())),
                        "share a GPU's memory"));
    return std::bit_cast<SharedMemory>(handle);
  }

  absl::StatusOr<std::unique_ptr<DeviceMemory>> open_shared(const SharedMemory& memory, size_t bytes) override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    CUdeviceptr address = 0;
    GLN_RETURN_IF_ERROR(
        context_->check(context_->api().cuIpcOpenMemHandle(&address, std::bit_cast<CUipcMemHandle>(memory),
                                                           CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                        "open the memory of another process's GPU"));
    return std::make_unique<DeviceMemory>(Address{address}, bytes, [address, context = context_] {
      const CudaContext::Current inside(*context);
      if (inside.status().ok()) context->api().cuIpcCloseMemHandle(address);
    });
  }

  absl::StatusOr<std::unique_ptr<Stream>> create_stream(Priority priority) override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    int least = 0;
    int greatest = 0;
    CUstream stream = nullptr;
    GLN_RETURN_IF_ERROR(context_->check(context_->api().cuCtxGetStreamPriorityRange(&least, &greatest),
                                        "get the priorities of streams"));
    GLN_RETURN_IF_ERROR(
        context_->check(context_->api().cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING,
                                                                   priority == Priority::kHigh ? greatest : least),
                        "make a stream"));
    return std::make_unique<CudaStream>(context_, stream);
  }

  absl::StatusOr<std::unique_ptr<Event>> create_event() override {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    CUevent event = nullptr;
    GLN_RETURN_IF_ERROR(
        context_->check(context_->api().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "make an event"));
    return std::make_unique<CudaEvent>(context_, event);
  }

  absl::Status record(CallerStream stream, Event& event) override {
    GLN_RETURN_IF_ERROR(check_not_capturing(*context_, stream_of(stream)));
    return record_on(*context_, stream_of(stream), event);
  }
  absl::Status hold(CallerStream stream, const Event& event) override {
    GLN_RETURN_IF_ERROR(check_not_capturing(*context_, stream_of(stream)));
    return hold_until(*context_, stream_of(stream), event);
  }

  const Context& context() const { return context_; }

 private:
  const Context context_;
};

// The kernel writes -1 on a machine with one node.
std::optional<int> find_numa_node(const std::string& sysfs, const std::string& pci_bus_id) {
  const auto text = read_file(absl::StrCat(sysfs, "/bus/pci/devices/", pci_bus_id, "/numa_node"), "the NUMA node");
  int node = -1;
  if (!text.ok() || !absl::SimpleAtoi(*text, &node) || node < 0) return std::nullopt;
  return node;
}

absl::StatusOr<DeviceInfo> describe(const CudaContext& context, const std::string& sysfs) {
  const CudaApi& api = context.api();
  std::array<char, 256> text{};
  DeviceInfo info{.place = context.place()};
  GLN_RETURN_IF_ERROR(
      context.check(api.cuDeviceGetName(text.data(), text.size() - 1, context.device()), "get the name of a GPU"));
  info.name = text.data();
  GLN_RETURN_IF_ERROR(context.check(api.cuDeviceGetPCIBusId(text.data(), text.size() - 1, context.device()),
                                    "get the PCI address of a GPU"));
  info.pci_bus_id = absl::AsciiStrToLower(text.data());
  int is_visible = 0;
  GLN_RETURN_IF_ERROR(context.check(
      api.cuDeviceGetAttribute(&is_visible, CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, context.device()),
      "get a capability of a GPU"));
  info.has_host_visible_memory = is_visible != 0;
  info.numa_node = find_numa_node(sysfs, info.pci_bus_id);
  return info;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> open_cuda_device(std::shared_ptr<const Driver> driver, int ordinal,
                                                         const std::string& sysfs) {
  GLN_ASSIGN_OR_RETURN(Context context, CudaContext::retain(std::move(driver), ordinal));
  GLN_ASSIGN_OR_RETURN(DeviceInfo info, describe(*context, sysfs));
  return std::make_unique<CudaDevice>(std::move(info), std::move(context));
}

std::shared_ptr<const CudaContext> cuda_context_of(const Device& device) {
  return static_cast<const CudaDevice&>(device).context();
}

std::optional<CUstream> cuda_stream_of(const Stream& stream, Place place) {
  const auto* const found = dynamic_cast<const CudaStream*>(&stream);
  if (found == nullptr || found->place() != place) return std::nullopt;
  return found->handle();
}

}  // namespace gleaner::device
