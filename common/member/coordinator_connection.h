// CoordinatorConnection is a member's connection to its coordinator: one gRPC call after the other. A call that was
// dropped ends later, when gRPC has cancelled it. CoordinatorConnection passes on nothing that still arrives from that
// call, and opens the next call once it has ended.
//
// Threads: all functions run on one thread, except wake(), which any thread may call.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/member/join_options.h"
#include "common/member/stream.h"
#include "common/proto/coordinator.pb.h"

namespace gleaner::member {

class CoordinatorConnection {
 public:
  // `options` must outlive this object.
  explicit CoordinatorConnection(const JoinOptions& options) : options_(options), stream_(options.coordinator) {}

  // Opens a call, once a call that was dropped has ended. Reads the credentials from their files now.
  void open();
  // Drops the open call, and a call that waits to be opened. kClosed does not follow.
  void drop();
  bool is_open() const { return stream_.is_open() && !is_dropped_; }
  void write(v1::MemberMessage message) { stream_.write(std::move(message)); }
  bool is_written() const { return stream_.written(); }

  // Waits as Stream::wait() does. Also returns kClosed if the credentials' files can't be used.
  Stream::Event wait(absl::Duration timeout);
  const v1::CoordinatorMessage& message() const { return stream_.message(); }
  const absl::Status& status() const { return status_; }
  void wake() { stream_.wake(); }

 private:
  const JoinOptions& options_;
  Stream stream_;
  bool is_dropped_ = false;    // the open call is cancelled, and has not ended
  bool opens_next_ = false;    // a call is to be opened once the dropped one has ended
  absl::Status open_failure_;  // not OK: open() failed, and wait() has not returned kClosed for it yet
  absl::Status status_;        // of the last call that ended
};

}  // namespace gleaner::member
