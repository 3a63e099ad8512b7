// RankDevice is the GPU of a rank: the one whose memory its requests use. The first such request opens it. Thread safe.
#pragma once

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/driver.h"
#include "comm-lib/device/event_pool.h"
#include "comm-lib/device/programs_driver.h"
#include "comm-lib/runtime/request.h"

namespace gleaner::runtime {

// The memory of a GPU, and the stream on which the program uses it.
struct DeviceStream {
  device::Place place;
  device::CallerStream stream{};
};

// The events of a request in the memory of a GPU (device::Access).
struct DeviceMarks {
  device::CallerStream stream{};  // of the program's call of push_pull()
  device::EventPool::Loan ready;
  device::EventPool::Loan copied;
};

class RankDevice {
 public:
  // Begins a request: finds out whether its memory is where the program says, marks the program's stream, and sets the
  // request's access and `marks`. Without `gpu` only checks that the memory is the host's. Errors: InvalidArgument,
  // also if `gpu` is another GPU than that of an earlier request; otherwise those of the driver.
  absl::Status begin(const std::optional<DeviceStream>& gpu, Request& request, std::unique_ptr<DeviceMarks>& marks)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // InvalidArgument: the memory is that of a GPU, which only calls with a stream take.
  absl::Status check_on_host(ConstBytes memory) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes all that the program queues from now on, on `stream` or else on that of the request, wait for the copies of
  // the result that were queued.
  absl::Status hold(const DeviceMarks& marks, std::optional<device::CallerStream> stream);

 private:
  struct Gpu {
    std::shared_ptr<const device::Driver> driver;
    std::unique_ptr<device::Device> device;
    std::unique_ptr<device::EventPool> events;
  };
  static absl::StatusOr<Gpu> open(device::Place place);
  absl::StatusOr<const Gpu*> find(device::Place place) ABSL_LOCKS_EXCLUDED(mutex_);
  const Gpu* opened() const ABSL_LOCKS_EXCLUDED(mutex_);
  const device::Driver* used_driver() ABSL_LOCKS_EXCLUDED(mutex_);

  mutable absl::Mutex mutex_;
  device::ProgramsDriver programs_driver_ ABSL_GUARDED_BY(mutex_);
  std::optional<Gpu> gpu_ ABSL_GUARDED_BY(mutex_);  // stays once it is open
};

}  // namespace gleaner::runtime
