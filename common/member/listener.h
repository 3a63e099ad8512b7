// Listener receives the callbacks of a Client (client.h). The client's thread makes them, one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "common/member/messages.h"
#include "common/plan/plan.h"

namespace gleaner::member {

class Listener {
 public:
  virtual ~Listener() = default;
  // May be called again with other contents before the first commit: the listener then forgets the plan that it has
  // prepared.
  virtual void on_welcome(const Welcome& welcome) = 0;
  // Prepares `plan`, which is valid. Answer by Client::acknowledge(epoch) or refuse(epoch, why). The plan replaces a
  // plan that was prepared before, and may be the same plan again.
  virtual void on_prepare(std::shared_ptr<const plan::Plan> plan) = 0;
  virtual void on_commit(uint32_t epoch) = 0;
  // The job can't go on: a member is lost, declarations differ, or a start did not complete. The status names the
  // member and the reason. Also called if the coordinator can't be reached before the first commit, and on a summer
  // when the job goes on without it. Last callback.
  virtual void on_failed(const absl::Status& status) = 0;
  // The round of an elastic job has ended; the status says why. The worker leaves by Client::come_again(), and starts a
  // new Client to join again. Last callback.
  virtual void on_regroup(const absl::Status& status) { on_failed(status); }
  // `workers` wait to take part in the next round of this elastic job.
  virtual void on_newcomers(uint32_t /*workers*/) {}
  // A rank has left cleanly: no further sum can be made, and every rank has the results of all sums.
  virtual void on_ending() {}
  // Every worker has left, or this summer is not needed any more, so summers may end. Last callback.
  virtual void on_finished() = 0;
  // The coordinator can't be reached after the first commit. Sums of planned tensors go on. Tensors that are in no plan
  // wait: on_failed() follows if no coordinator comes within plan_timeout, or immediately if none can come.
  virtual void on_coordinator_lost() {}
  // The coordinator is lost, and no other will replace it: it named no session, or the one that answers has begun
  // another job. Follows on_coordinator_lost(), immediately or later.
  virtual void on_coordinator_gone(const absl::Status& /*why*/) {}
  // The coordinator has returned, or another has replaced it.
  virtual void on_coordinator_found() {}
  // Some rank waits for a result of this tensor. Answer by Client::begun() with the number of push_pulls of the tensor
  // that have begun on this rank.
  virtual void on_inquired(const std::string& /*tensor*/) {}
  // An observer traces this job. Answer kSend by Client::send_trace(recording, ...). Also called while this member
  // leaves.
  virtual void on_trace(TraceOrder /*order*/, uint64_t /*recording*/) {}
};

}  // namespace gleaner::member
