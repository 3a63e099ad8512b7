// Stream is the coordinator's end of one member's gRPC stream: a reactor whose callbacks come from gRPC's threads.
//
// Stream passes messages to the EventQueue one at a time. Each call of read() reads one message, so a member that sends
// faster than the coordinator reads has to wait (flow control). send(), end() and read() may be called from any thread.
// Messages travel as bytes: a message for many members is serialized once, and the length of a message is known before
// it is parsed. A Stream lives until gRPC is done with it and the last shared_ptr is gone. Messages that are sent after
// its end are dropped.
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
#include "coordinator/roster/roster.h"
#include "coordinator/service/unauthenticated_streams.h"

namespace gleaner::coordinator {

class EventQueue;

class Stream final : public grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  using Outgoing = std::shared_ptr<const grpc::ByteBuffer>;
  static Outgoing encode(const v1::CoordinatorMessage& message);

  // gRPC keeps the stream alive until it has ended. on_authenticated() or the destructor frees `slot`.
  static std::shared_ptr<Stream> create(StreamId id, std::string peer, UnauthenticatedStreams::Slot slot,
                                        std::shared_ptr<EventQueue> events);

  // Reads the next message and passes it to the event queue. A message above `max_bytes` ends the stream. Must not be
  // called while another read is in progress.
  void read(size_t max_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void send(Outgoing message) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the stream with this status, after the messages that were sent before.
  void end(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_);
  // The member is authenticated, so the stream's slot among unauthenticated streams becomes free.
  void on_authenticated() ABSL_LOCKS_EXCLUDED(mutex_);

  StreamId id() const { return id_; }
  const std::string& peer() const { return peer_; }  // the peer's address as gRPC names it, for the log

 private:
  Stream(StreamId id, std::string peer, UnauthenticatedStreams::Slot slot, std::shared_ptr<EventQueue> events)
      : id_(id), peer_(std::move(peer)), events_(std::move(events)), slot_(std::move(slot)) {}
  void OnReadDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_);
  // The member or the server's shutdown has cancelled the stream. No other callback comes if nothing is being read.
  void OnCancel() override ABSL_LOCKS_EXCLUDED(mutex_) { end(absl::OkStatus()); }
  void OnDone() override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status parse(v1::MemberMessage& message);
  void close(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);
  void advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const StreamId id_;
  const std::string peer_;
  const std::shared_ptr<EventQueue> events_;
  std::shared_ptr<Stream> self_;  // keeps the stream alive until OnDone()
  grpc::ByteBuffer incoming_;     // message of the read in progress
  // The limit of that read. Atomic, since TSan does not see how gRPC orders the start and the end of a read.
  std::atomic<size_t> max_bytes_ = 0;

  absl::Mutex mutex_;
  UnauthenticatedStreams::Slot slot_ ABSL_GUARDED_BY(mutex_);
  std::deque<Outgoing> queue_ ABSL_GUARDED_BY(mutex_);  // the first one is being written if writing_
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;  // on_closed() of the event queue was called
  grpc::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace gleaner::coordinator
