#include "operator/coordinator/stream.h"

#include <utility>

namespace gleaner::coordinator {

std::shared_ptr<Stream> Stream::create(StreamId id, std::string peer, Inbox* inbox) {
  auto stream = std::shared_ptr<Stream>(new Stream(id, std::move(peer), inbox));
  stream->self_ = stream;
  return stream;
}

void Stream::start() { StartRead(&incoming_); }

void Stream::send(Outgoing message) {
  absl::MutexLock lock(&mutex_);
  if (ending_) return;
  queue_.push_back(std::move(message));
  advance();
}

void Stream::end(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(ending_, true)) return;
  status_ = {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
  advance();
}

void Stream::advance() {
  if (writing_ || ended_) return;
  if (!queue_.empty()) {
    writing_ = true;
    StartWrite(queue_.front().get());
  } else if (ending_) {
    ended_ = true;
    Finish(status_);
  }
}

void Stream::OnReadDone(bool ok) {
  if (!ok) {
    inbox_->on_closed(id_, absl::UnavailableError("its connection broke"));
    return end(absl::OkStatus());
  }
  inbox_->on_message(id_, std::move(incoming_));
  incoming_.Clear();
  StartRead(&incoming_);
}

void Stream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  queue_.pop_front();
  if (!ok) {
    // The read fails too, and tells the inbox.
    queue_.clear();
    ending_ = true;
  }
  advance();
}

void Stream::OnDone() {
  // Under the lock that every callback before this one held: nothing of theirs comes after the destructor.
  std::shared_ptr<Stream> self;
  absl::MutexLock lock(&mutex_);
  self = std::move(self_);
}

}  // namespace gleaner::coordinator
