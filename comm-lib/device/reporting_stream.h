// ReportingStream is a stream with another one that tells the host of its progress. On the same stream, later work
// would wait until the host has been told, which takes about as long as the copy of a piece. Belongs to one thread at a
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "comm-lib/device/completions.h"
#include "comm-lib/device/device.h"

namespace gleaner::device {

class ReportingStream {
 public:
  // `device` and `completions` must outlive the stream.
  static absl::StatusOr<ReportingStream> open(Device* device, Completions* completions);

  Stream* operator->() const { return work_.get(); }
  Stream& operator*() const { return *work_; }
  // As Stream::notify() and Stream::check(). After an error of notify() work may be queued, and its tag never comes.
  absl::Status notify(uint64_t tag);
  absl::Status check() const;
  bool has_unseen_work() const { return has_unseen_work_; }  // of which notify() could not tell

 private:
  ReportingStream(Completions* completions, std::unique_ptr<Stream> work, std::unique_ptr<Stream> reports,
                  std::unique_ptr<Event> reached)
      : completions_(completions), work_(std::move(work)), reports_(std::move(reports)), reached_(std::move(reached)) {}

  Completions* completions_;
  std::unique_ptr<Stream> work_;
  std::unique_ptr<Stream> reports_;
  bool has_unseen_work_ = false;
  std::unique_ptr<Event> reached_;  // the point of the last notify(); a stream waits for it as it is recorded then
};

}  // namespace gleaner::device
