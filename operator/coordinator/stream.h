// One member's gRPC stream, as the server sees it: a reactor whose callbacks come from gRPC's threads.
//
// What is read goes to the Inbox; send() and end() may come from any thread. The object lives until gRPC is done with
// it and the last shared_ptr is gone; what is sent to it after its end is dropped.
#pragma once

#include <grpcpp/grpcpp.h>

#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "operator/coordinator/roster.h"

namespace gleaner::coordinator {

// Where streams put what they hear. Thread safe; outlives every stream.
class Inbox {
 public:
  virtual ~Inbox() = default;
  virtual void on_message(StreamId stream, v1::MemberMessage message) = 0;
  virtual void on_closed(StreamId stream, const absl::Status& why) = 0;  // last call of a stream
};

class Stream final : public grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage> {
 public:
  using Outgoing = std::shared_ptr<const v1::CoordinatorMessage>;

  // gRPC owns it from here on.
  static std::shared_ptr<Stream> create(StreamId id, std::string peer, Inbox* inbox);

  void start();  // begins to read; once
  void send(Outgoing message) ABSL_LOCKS_EXCLUDED(mutex_);
  // After what was sent before it, the stream ends with this status.
  void end(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);

  StreamId id() const { return id_; }
  const std::string& peer() const { return peer_; }  // for messages to people

 private:
  Stream(StreamId id, std::string peer, Inbox* inbox) : id_(id), peer_(std::move(peer)), inbox_(inbox) {}
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override;
  void advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StreamId id_;
  const std::string peer_;
  Inbox* const inbox_;
  std::shared_ptr<Stream> self_;  // until OnDone()
  v1::MemberMessage incoming_;    // of the read in progress

  absl::Mutex mutex_;
  std::deque<Outgoing> queue_ ABSL_GUARDED_BY(mutex_);  // the first one is on its way if writing_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::coordinator
