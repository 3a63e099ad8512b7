#include "common/member/coordinator_connection.h"

#include "common/base/limits.h"
#include "common/member/credentials.h"

namespace gleaner::member {

void CoordinatorConnection::open() {
  if (stream_.is_open()) {
    opens_next_ = true;
    return;
  }
  const auto credentials = channel_credentials(options_);
  if (credentials.ok()) return stream_.open(*credentials);
  open_failure_ = credentials.status();
}

void CoordinatorConnection::drop() {
  opens_next_ = false;
  open_failure_ = absl::OkStatus();
  if (!stream_.is_open()) return;
  is_dropped_ = true;
  stream_.cancel();
}

Stream::Event CoordinatorConnection::wait(absl::Duration timeout) {
  if (!open_failure_.ok()) {
    status_ = std::exchange(open_failure_, absl::OkStatus());
    return Stream::Event::kClosed;
  }
  const Stream::Event event = stream_.wait(timeout);
  if (!is_dropped_) {
    if (event == Stream::Event::kClosed) status_ = with_limits(stream_.status());
    return event;
  }
  if (event == Stream::Event::kClosed) {
    is_dropped_ = false;
    if (std::exchange(opens_next_, false)) open();
  }
  return Stream::Event::kNothing;
}

}  // namespace gleaner::member
