// One member's gRPC stream, as the coordinator sees it: a reactor whose callbacks come from gRPC's threads.
//
// Messages go to the Inbox one at a time: the next one is read only when read() is called again, so a member that sends
// faster than the coordinator reads has to wait. send(), end() and read() may be called from any thread. Messages
// travel as bytes: a message for many members is serialized once, and the length of a message is known before it is
// parsed. The object lives until gRPC is done with it and the last shared_ptr is gone; messages sent to it after its
// end are dropped.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "operator/coordinator/roster.h"
#include "operator/coordinator/strangers.h"

namespace gleaner::coordinator {

// Where streams put what they hear. Thread safe.
class Inbox {
 public:
  virtual ~Inbox() = default;
  virtual void on_message(StreamId stream, v1::MemberMessage message) = 0;
  virtual void on_closed(StreamId stream, const absl::Status& why) = 0;  // once, and last
};

class Stream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  using Outgoing = std::shared_ptr<const grpc::ByteBuffer>;
  static Outgoing encode(const v1::CoordinatorMessage& message);

  // gRPC owns it from here on. `place` is given up by know(), or with the stream.
  static std::shared_ptr<Stream> create(StreamId id, std::string peer, Strangers::Place place,
                                        std::shared_ptr<Inbox> inbox);

  // The next message goes to the inbox; one that is longer than this ends the stream. Not before the last one came.
  void read(size_t max_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void send(Outgoing message) ABSL_LOCKS_EXCLUDED(mutex_);
  // After what was sent before it, the stream ends with this status.
  void end(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // It is no stranger's any more.
  void know() ABSL_LOCKS_EXCLUDED(mutex_);

  StreamId id() const { return id_; }
  const std::string& peer() const { return peer_; }  // for messages to people

 private:
  Stream(StreamId id, std::string peer, Strangers::Place place, std::shared_ptr<Inbox> inbox)
      : id_(id), peer_(std::move(peer)), inbox_(std::move(inbox)), place_(std::move(place)) {}
  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status parse(v1::MemberMessage& message);
  void close(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StreamId id_;
  const std::string peer_;
  const std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<Stream> self_;       // until OnDone()
  grpc::ByteBuffer incoming_;          // of the read in progress
  std::atomic<size_t> max_bytes_ = 0;  // of that; atomic since TSan does not see how gRPC orders a read and its end

  absl::Mutex mutex_;
  Strangers::Place place_ ABSL_GUARDED_BY(mutex_);
  std::deque<Outgoing> queue_ ABSL_GUARDED_BY(mutex_);  // the first one is on its way if writing_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // the inbox knows
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::coordinator
