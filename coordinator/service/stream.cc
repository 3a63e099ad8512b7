#include "coordinator/service/stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/service/event_queue.h"

namespace gleaner::coordinator {

Stream::Outgoing Stream::encode(const v1::CoordinatorMessage& message) {
  auto bytes = std::make_shared<grpc::ByteBuffer>();
  bool own = false;
  // Fails only for messages above 2 GiB, a size that no plan reaches. The member's parser then ends the stream.
  static_cast<void>(grpc::SerializationTraits<v1::CoordinatorMessage>::Serialize(message, bytes.get(), &own));
  return bytes;
}

std::shared_ptr<Stream> Stream::create(StreamId id, std::string peer, UnauthenticatedStreams::Slot slot,
                                       std::shared_ptr<EventQueue> events) {
  auto stream = std::shared_ptr<Stream>(new Stream(id, std::move(peer), std::move(slot), std::move(events)));
  stream->self_ = stream;
  return stream;
}

void Stream::read(size_t max_bytes) {
  absl::MutexLock lock(&mutex_);
  if (ended_) return;
  max_bytes_ = max_bytes;
  StartRead(&incoming_);
}

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

void Stream::on_authenticated() {
  absl::MutexLock lock(&mutex_);
  slot_ = {};
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

absl::Status Stream::parse(v1::MemberMessage& message) {
  const size_t most = max_bytes_;
  if (incoming_.Length() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", incoming_.Length(), " bytes; expected at most ", most));
  }
  const grpc::Status parsed = grpc::SerializationTraits<v1::MemberMessage>::Deserialize(&incoming_, &message);
  return parsed.ok() ? absl::OkStatus() : absl::InvalidArgumentError("a message that can't be parsed");
}

void Stream::OnReadDone(bool ok) {
  if (!ok) {
    close(absl::UnavailableError("its connection broke"));
    return end(absl::OkStatus());
  }
  v1::MemberMessage message;
  const absl::Status status = parse(message);
  incoming_.Clear();
  if (status.ok()) return events_->on_message(id_, std::move(message));
  close(status);
  end(status);
}

void Stream::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  queue_.pop_front();
  if (!ok) {
    // The read fails too, and OnReadDone() tells the event queue.
    queue_.clear();
    ending_ = true;
  }
  advance();
}

void Stream::close(const absl::Status& why) {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(closed_, true)) return;
  }
  events_->on_closed(id_, why);
}

void Stream::OnDone() {
  close(absl::UnavailableError("its connection broke"));
  // Every earlier callback held this lock, so none of them runs any more when `self` destroys the stream.
  std::shared_ptr<Stream> self;
  absl::MutexLock lock(&mutex_);
  self = std::move(self_);
}

}  // namespace gleaner::coordinator
