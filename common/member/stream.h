// Stream makes gRPC calls to the coordinator, one at a time, over a completion queue that one thread waits on.
//
// Threads: all functions run on one thread, except wake(), which any thread may call.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/proto/coordinator.grpc.pb.h"

namespace gleaner::member {

class Stream {
 public:
  enum class Event {
    kNothing,  // the timeout passed, wake() was called, or a completion needs no action
    kMessage,  // message() is the next message, until the next wait()
    kClosed,   // the call ended with status(); open() may begin another
  };

  explicit Stream(const Address& coordinator) : coordinator_(coordinator) {}
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void open(const std::shared_ptr<grpc::ChannelCredentials>& credentials);  // on a connection of its own
  bool is_open() const { return call_ != nullptr; }
  void write(v1::MemberMessage message);  // in order; dropped if no call is open
  bool written() const { return writes_.empty(); }
  void cancel();  // kClosed follows

  // Waits for the next event, for `timeout` at most.
  Event wait(absl::Duration timeout);
  const v1::CoordinatorMessage& message() const { return message_; }
  const absl::Status& status() const { return status_; }

  // Ends a wait() in progress, or else the next one, without a further wait.
  void wake();

 private:
  enum class Tag : intptr_t { kStart = 1, kRead, kWrite, kFinish, kWake };
  static void* pointer(Tag tag) { return reinterpret_cast<void*>(tag); }
  Event on_completion(Tag tag, bool ok);
  void write_next();
  void finish();

  const Address coordinator_;
  std::unique_ptr<v1::Coordinator::Stub> stub_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<v1::MemberMessage, v1::CoordinatorMessage>> call_;
  v1::CoordinatorMessage message_;
  std::deque<v1::MemberMessage> writes_;  // the first one is being written if writing_
  grpc::Status end_;
  absl::Status status_;
  int outstanding_ = 0;  // operations of the call that have not completed
  bool started_ = false;
  bool writing_ = false;
  bool read_next_ = false;
  bool finishing_ = false;
  bool finished_ = false;

  grpc::Alarm alarm_;
  std::atomic<bool> woken_{false};  // an alarm is set, and its completion has not been taken
};

}  // namespace gleaner::member
