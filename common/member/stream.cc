#include "common/member/stream.h"

#include <utility>

#include "common/proto/plan_codec.h"

namespace gleaner::member {
namespace {

grpc::ChannelArguments channel_arguments() {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(proto::kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(proto::kMaxMessageBytes);
  // The coordinator may start after this member, so gRPC tries again soon.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  // Members of one process share no connection, and the HTTP proxy of the environment is for other traffic.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return arguments;
}

gpr_timespec after(absl::Duration timeout) {
  const int64_t milliseconds = absl::ToInt64Milliseconds(timeout + absl::Microseconds(999));
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(milliseconds, GPR_TIMESPAN));
}

}  // namespace

Stream::~Stream() {
  cancel();
  while (call_ != nullptr) wait(absl::InfiniteDuration());
  alarm_.Cancel();
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

void Stream::open(const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  stub_ =
      v1::Coordinator::NewStub(grpc::CreateCustomChannel(coordinator_.to_string(), credentials, channel_arguments()));
  context_ = std::make_unique<grpc::ClientContext>();
  started_ = writing_ = read_next_ = finishing_ = finished_ = false;
  writes_.clear();
  call_ = stub_->PrepareAsyncJoin(context_.get(), &queue_);
  ++outstanding_;
  call_->StartCall(pointer(Tag::kStart));
}

void Stream::write(v1::MemberMessage message) {
  if (call_ == nullptr || finishing_) return;
  writes_.push_back(std::move(message));
  write_next();
}

void Stream::write_next() {
  if (!started_ || writing_ || finishing_ || writes_.empty()) return;
  writing_ = true;
  ++outstanding_;
  call_->Write(writes_.front(), pointer(Tag::kWrite));
}

void Stream::cancel() {
  if (call_ != nullptr) context_->TryCancel();
}

void Stream::finish() {
  if (std::exchange(finishing_, true)) return;
  ++outstanding_;
  call_->Finish(&end_, pointer(Tag::kFinish));
}

Stream::Event Stream::wait(absl::Duration timeout) {
  if (call_ != nullptr && std::exchange(read_next_, false)) {
    ++outstanding_;
    call_->Read(&message_, pointer(Tag::kRead));
  }
  void* tag = nullptr;
  bool ok = false;
  const gpr_timespec deadline =
      timeout == absl::InfiniteDuration() ? gpr_inf_future(GPR_CLOCK_MONOTONIC) : after(timeout);
  if (queue_.AsyncNext(&tag, &ok, deadline) != grpc::CompletionQueue::GOT_EVENT) return Event::kNothing;
  return on_completion(static_cast<Tag>(reinterpret_cast<intptr_t>(tag)), ok);
}

Stream::Event Stream::on_completion(Tag tag, bool ok) {
  if (tag == Tag::kWake) {
    woken_ = false;
    return Event::kNothing;
  }
  --outstanding_;
  switch (tag) {
    case Tag::kStart:
      started_ = true;
      if (ok) {
        read_next_ = true;
        write_next();
      } else {
        finish();
      }
      break;
    case Tag::kRead:
      if (ok) {
        read_next_ = true;
        return Event::kMessage;
      }
      finish();
      break;
    case Tag::kWrite:
      writing_ = false;
      writes_.pop_front();
      if (ok) write_next();  // if a write fails, the read fails, too, and ends the call
      break;
    case Tag::kFinish:
      finished_ = true;
      break;
    case Tag::kWake:
      break;
  }
  if (!finished_ || outstanding_ > 0) return Event::kNothing;
  status_ = {static_cast<absl::StatusCode>(end_.error_code()), end_.error_message()};
  call_.reset();
  context_.reset();
  writes_.clear();
  return Event::kClosed;
}

void Stream::wake() {
  if (woken_.exchange(true)) return;
  alarm_.Set(&queue_, gpr_now(GPR_CLOCK_MONOTONIC), pointer(Tag::kWake));
}

}  // namespace gleaner::member
