// Device moves bytes between the memory of one device and pinned host memory, asynchronously. There are two: the host
// (host_device.h), which copies at once, and a GPU (cuda_device.h).
//
// The way of a copy of a tensor, to the host and back, for a caller that has queued the tensor's making on a stream of
// its own:
//
//   device.record(caller_stream, ready)         in the caller's thread: marks what is queued there now
//   stream.wait_for(ready)                      our stream begins after that
//   stream.copy_to_host(tensor, slot)           the slot is pinned memory
//   stream.notify(completions, tag)             tells the I/O thread when the bytes are in the slot
//   ...                                         the result is in another slot
//   stream.copy_to_device(result, tensor)
//   stream.record(copied)
//   stream.notify(completions, tag)             tells the I/O thread when the slot is free
//   device.hold(caller_stream, copied)          in the caller's thread: what it queues from now on sees the result
//
// Nothing here waits for a device. Calls queue work, in the order of the calls on one stream, and streams run beside
// each other. Host and device memory must stay valid until the work that uses it has ended, as Completions tells; a
// destroyed stream or event does not end that work.
//
// Threads: a stream, and an event, belong to one thread at a time; the rest of a Device is thread safe. Streams, events
// and pinned memory may outlive their Device. Errors: as in cuda_errors.h; InvalidArgument if an event is another
// device's, FailedPrecondition if an event was not recorded, or in a process that was forked.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/bytes.h"

namespace gleaner::device {

class Completions;

// Names the memory of the host, or that of a GPU by its CUDA ordinal: its number among those that this process sees.
struct Place {
  static constexpr int kHost = -1;
  int ordinal = kHost;
  bool is_host() const { return ordinal == kHost; }
  bool operator==(const Place&) const = default;
};

// Returns "the host" or "GPU 1".
std::string name_of(Place place);

// An address in the memory of a device: a CUdeviceptr, which the host must not dereference. For the host device it is a
// pointer.
enum class Address : uint64_t {};
inline Address address_of(ConstBytes bytes) { return Address{reinterpret_cast<uintptr_t>(bytes.data())}; }

// A stream of the caller, as the number of its CUstream: torch.cuda.current_stream().cuda_stream. 0 is the legacy
// default stream of the device, and the only one of the host device.
enum class CallerStream : uintptr_t {};

struct DeviceInfo {
  Place place;
  std::string name;                // "NVIDIA H100 80GB HBM3"; the host's is "host"
  std::string pci_bus_id;          // "0000:19:00.0"; the host has none
  std::optional<int> numa_node;    // the node nearest to the device; nullopt: unknown, or the machine has one node
  bool has_host_visible_memory{};  // the host reads managed memory where it is, without a copy to host memory
};

// Pinned memory of the host, page aligned, which ends with this object. The memory of a destroyed object must not be in
// use by queued work.
class PinnedMemory {
 public:
  PinnedMemory(MutableBytes bytes, std::function<void()> release) : bytes_(bytes), release_(std::move(release)) {}
  ~PinnedMemory() { release_(); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  MutableBytes bytes() const { return bytes_; }

 private:
  const MutableBytes bytes_;
  const std::function<void()> release_;
};

// Memory of a device, which ends with this object, or with the object of the process that has allocated it. The memory
// of a destroyed object must not be in use by queued work.
class DeviceMemory {
 public:
  DeviceMemory(Address address, size_t bytes, std::function<void()> release)
      : address_(address), bytes_(bytes), release_(std::move(release)) {}
  ~DeviceMemory() { release_(); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  Address address() const { return address_; }
  size_t bytes() const { return bytes_; }

 private:
  const Address address_;
  const size_t bytes_;
  const std::function<void()> release_;
};

// Names memory of a device for other processes of this machine (CUipcMemHandle).
using SharedMemory = std::array<std::byte, 64>;

// Marks a point of a stream. An event that was recorded must live until its point is reached, since a stream of the
// caller may yet be told to wait for it. EventPool keeps events, and reuses them.
class Event {
 public:
  virtual ~Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  Place place() const { return place_; }
  // Returns whether record() was called since the event was made or forgotten.
  bool is_recorded() const { return recorded_; }
  // Returns whether all work before the recorded point has ended; false before the event is recorded, although
  // cuEventQuery() reports success then.
  virtual absl::StatusOr<bool> is_done() const = 0;
  // Makes the event one that was not recorded. Streams that wait for it already go on waiting.
  void forget() { recorded_ = false; }

 protected:
  explicit Event(Place place) : place_(place) {}
  bool recorded_ = false;

 private:
  const Place place_;
};

class Stream {
 public:
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Queues a copy of `to.size()` or `from.size()` bytes. The host memory should be pinned: the driver may wait for a
  // copy of other memory (cuMemcpyDtoHAsync).
  virtual absl::Status copy_to_host(Address from, MutableBytes to) = 0;
  virtual absl::Status copy_to_device(ConstBytes from, Address to) = 0;
  // Queues a copy between memory of this stream's device, and memory that open_shared() has returned.
  virtual absl::Status copy_on_device(Address from, Address to, size_t bytes) = 0;
  // Makes `event` mark all that is queued on this stream so far.
  virtual absl::Status record(Event& event) = 0;
  // Makes all that is queued on this stream from now on wait for `event` as it is recorded now.
  virtual absl::Status wait_for(const Event& event) = 0;
  // Gives `tag` to `completions` when all that is queued on this stream so far has ended. Only the thread of
  // `completions` calls this. After a failure of the device the tag never comes (cuLaunchHostFunc); see check().
  virtual absl::Status notify(Completions& completions, uint64_t tag) = 0;
  // Returns the failure of the device, if there is one. To be called now and then while completions are outstanding.
  virtual absl::Status check() const = 0;
};

// kHigh: the device prefers this stream's work to that of streams with kNormal.
enum class Priority { kNormal, kHigh };

class Device {
 public:
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  // Allocates `bytes` (1 or more) bytes that all devices may copy from and to. ResourceExhausted: no memory is left.
  virtual absl::StatusOr<std::unique_ptr<PinnedMemory>> allocate_pinned(size_t bytes) = 0;
  // Pins memory that the caller has allocated, by whole pages, until the result is destroyed. The memory must outlive
  // it.
  virtual absl::StatusOr<std::unique_ptr<PinnedMemory>> pin(MutableBytes memory) = 0;
  // Allocates memory of the device. ResourceExhausted: too little is left.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> allocate(size_t bytes) = 0;
  // Lets other processes open memory that allocate() has returned. Unimplemented on the host.
  virtual absl::StatusOr<SharedMemory> share(const DeviceMemory& memory) = 0;
  // Maps memory that another process has shared, of this GPU or another one, so that streams may copy from and to it.
  // Errors: the GPUs can't reach each other's memory, or are not of one machine and one container.
  virtual absl::StatusOr<std::unique_ptr<DeviceMemory>> open_shared(const SharedMemory& memory, size_t bytes) = 0;
  virtual absl::StatusOr<std::unique_ptr<Stream>> create_stream(Priority priority) = 0;
  virtual absl::StatusOr<std::unique_ptr<Event>> create_event() = 0;

  // Makes `event` mark all that is queued on the caller's stream so far. FailedPrecondition, as of hold(): the caller
  // captures a CUDA graph on the stream.
  virtual absl::Status record(CallerStream stream, Event& event) = 0;
  // Makes all that the caller queues on its stream from now on wait for `event`.
  virtual absl::Status hold(CallerStream stream, const Event& event) = 0;

 protected:
  explicit Device(DeviceInfo info) : info_(std::move(info)) {}

 private:
  const DeviceInfo info_;
};

// For implementations. check_place() returns OK if `event` is one of `place`, check_recorded() if it is and was
// recorded.
absl::Status check_place(const Event& event, Place place);
absl::Status check_recorded(const Event& event, Place place);

}  // namespace gleaner::device
