// Copier copies between the memory of one GPU and the host, each direction on a stream of its own, in the order of the
// calls. It tells by tags which work has ended. Belongs to one thread at a time. Once warm it allocates no memory.
//
// Memory that the program's stream has yet to write is not ready. Work for it goes behind(): on a stream for each
// stream of the program, so that a tensor that is not ready holds up only those that the same stream makes after it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "comm-lib/device/access.h"
#include "comm-lib/device/completions.h"
#include "comm-lib/device/device.h"
#include "comm-lib/device/reporting_stream.h"

namespace gleaner::device {

class Copier {
 public:
  // `device` must outlive the copier.
  static absl::StatusOr<std::unique_ptr<Copier>> create(Device* device);

  // Queue a copy, whose memory must be ready, and stay valid until take() returns `tag`. After an error the copy may be
  // queued, and its tag never comes.
  absl::Status to_host(Address from, MutableBytes to, uint64_t tag);
  absl::Status to_device(ConstBytes from, Address to, uint64_t tag);
  // Returns a stream that waits until the memory of `access` is ready. Its notify() gives tags to take().
  absl::StatusOr<ReportingStream*> behind(const Access& access);
  // Makes `event` mark the end of all copies to the GPU that were queued so far.
  absl::Status record_to_device(Event& event) { return to_device_->record(event); }
  // Makes `event` mark the end of all work that was queued so far. Later copies to the GPU wait for it, too.
  absl::Status record_all(Event& event);

  // Takes the tags of other streams, too.
  Completions& completions() const { return *completions_; }
  // Becomes readable when work has ended.
  int descriptor() const { return completions_->descriptor(); }
  // Appends the tags of the work that has ended. An error means that the GPU has failed, and that other tags never
  // come.
  absl::Status take(std::vector<uint64_t>& tags);
  // Waits until all work has ended or the GPU has failed. Returns false if `timeout` passes first, or if the end of
  // work can't be seen, since a call returned an error for it.
  bool drain(absl::Duration timeout);

 private:
  Copier(Device* device, std::unique_ptr<Completions> completions, ReportingStream to_host, ReportingStream to_device)
      : device_(device),
        completions_(std::move(completions)),
        to_host_(std::move(to_host)),
        to_device_(std::move(to_device)) {}
  absl::Status check() const;
  bool has_unseen_work() const;

  Device* const device_;
  const std::unique_ptr<Completions> completions_;
  ReportingStream to_host_;
  ReportingStream to_device_;
  std::vector<std::pair<CallerStream, ReportingStream>> behind_;  // by stream of the program, some may share one
  std::chrono::steady_clock::time_point checked_;
};

}  // namespace gleaner::device
