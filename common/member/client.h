// Client is a member's end of the coordinator's stream: it joins, declares tensors, follows plans, reports and leaves.
//
// Every rank and every CPU summer has a Client. The stream is gRPC (common/proto/coordinator.proto). A thread of the
// client, "gln-coord", reads it and calls the listener. All functions are thread safe and return without a wait, except
// leave(), come_again() and stop().
//
// A coordinator that can be replaced names a session. If such a coordinator is lost, the client looks for a coordinator
// until leave() or stop(), with pauses that grow to at most 5 s; before the first commit it does so until
// JoinOptions::timeout. The coordinator that answers takes the job up from the state that its members hold
// (docs/protocol.md#re-attachment).
//
// The thread passes everything that happens to a Membership, which decides the reaction. MessageDispatcher decodes the
// coordinator's messages, and ActionExecutor carries out Membership's actions. Calls from other threads go
// through a mailbox.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/env.h"
#include "common/base/mailbox.h"
#include "common/member/join_options.h"
#include "common/member/leave_outcome.h"
#include "common/member/listener.h"
#include "common/member/membership.h"
#include "common/plan/plan.h"
#include "common/trace/recorder.h"

namespace gleaner::member {

class ActionExecutor;
class CoordinatorConnection;
class Introduction;
class MessageDispatcher;

class Client {
 public:
  // Begins to join. The client's thread calls the listener until stop() or the destructor returns. `listener` must
  // outlive the client.
  static absl::StatusOr<std::unique_ptr<Client>> start(const Env& env, const JoinOptions& options, Listener* listener);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Declares tensors that this rank is going to reduce, and the operations of tensors' first push_pulls. The operations
  // may be of tensors declared in this call or earlier. When every rank has declared a tensor alike, a plan with it
  // follows as Prepare. A repeated declaration of the same tensor has no effect. If ranks declare different
  // operations, the job fails with an error that names the ranks.
  void declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations = {});
  // Answers Prepare: this member has prepared the plan, or can't follow it.
  void acknowledge(uint32_t epoch);
  void refuse(uint32_t epoch, const absl::Status& why);
  // Sends the report with the next heartbeat or with leave(), whichever comes first.
  void report(const Report& report);
  // Sends the report at once; as report() while the member is not admitted.
  void report_now(const Report& report);
  // Answers Inquire.
  void begun(const std::string& tensor, uint64_t push_pulls);
  // Answers CountPushPulls. `counts`: by tensor of the plan of `epoch`, which is in force.
  void push_pulls(uint32_t epoch, std::vector<uint64_t> counts);
  // Reports that this member can't go on with `member`, an index in the plan of `epoch`, which this member follows. The
  // coordinator leaves a CPU summer out of the next plan; for any other member, and for Fault::kItself, it fails the
  // job, and tells every member.
  void fault(uint32_t member, uint32_t epoch, const absl::Status& why);
  // Tells that an owner of partitions follows the plan of `epoch`. `by_rank`: the owner is a worker's summer. While
  // there is no coordinator that commits a prepared plan, Commit may follow from this call.
  void on_owner_follows(uint32_t epoch, bool by_rank);
  // Answers a Trace of kSend.
  void send_trace(uint64_t recording, trace::Recording contents);
  // Leaves the job; `status` is not OK if this member failed. A worker waits for the coordinator's answer: up to the
  // job's deadline while the coordinator is connected, since it may only be slow, and up to `timeout` for a lost
  // coordinator to return. Returns false if a plan was committed before the coordinator received the request to leave:
  // the worker may be needed under that plan, and leaves again when it has nothing in flight under it. A summer does
  // not wait: it follows plans until Finished, which comes when the plan in force does not include the summer.
  bool leave(const absl::Status& status, absl::Duration timeout) { return leave(status, false, timeout); }
  // Leaves, as leave() does, for a worker that is going to join the next round of an elastic job. That round waits for
  // it.
  bool come_again(const absl::Status& status, absl::Duration timeout) { return leave(status, true, timeout); }
  // Ends the client's thread. The listener is not called after stop() has returned.
  void stop();

 private:
  Client(const Env& env, const JoinOptions& options, Listener* listener);
  bool leave(const absl::Status& status, bool again, absl::Duration timeout);
  void run();
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const JoinOptions options_;
  LeaveOutcome leave_outcome_;

  // Only the client's thread uses these. The types behind pointers need gRPC, whose headers this header does not
  // include.
  Membership membership_;
  const std::unique_ptr<Introduction> introduction_;
  const std::unique_ptr<CoordinatorConnection> connection_;
  const std::unique_ptr<MessageDispatcher> dispatcher_;
  const std::unique_ptr<ActionExecutor> executor_;

  std::atomic<bool> stopping_{false};
  Mailbox mailbox_;
  std::thread thread_;
};

}  // namespace gleaner::member
