// The client of `gleaner trace`: an observer takes no part in a job and asks its members for what they record.
//
// It joins by the stream that members use and shows the same token. All functions run on one thread, except
// interrupt(), which any thread may call. Errors: Unavailable when the coordinator can't be reached or the stream ends
// (the job has ended); PermissionDenied, NotFound, InvalidArgument and FailedPrecondition as the coordinator returns
// them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/env.h"
#include "common/member/client.h"
#include "common/member/introduction.h"
#include "common/member/stream.h"
#include "common/plan/plan.h"
#include "common/trace/event.h"

namespace gleaner::member {

class Observer {
 public:
  // Of coordinator, job, token and files of `options`; waits for the coordinator's welcome up to its timeout.
  static absl::StatusOr<std::unique_ptr<Observer>> join(const Env& env, JoinOptions options);

  // All members record from about now on. Waits until the job has begun. Cancelled: interrupt().
  absl::Status record();

  struct Progress {
    uint64_t steps = 0;   // of the job, by the members' last reports: up to some seconds old
    bool ending = false;  // members want to leave, and wait a little for stop() and fetch()
    bool interrupted = false;
  };
  // Until there is something new, at most so long.
  absl::StatusOr<Progress> wait(absl::Duration timeout);

  struct Seat {
    uint32_t seat = 0;
    uint32_t member = 0;
    uint32_t local_rank = 0;
    bool present = false;  // connected to the coordinator
  };
  struct Stopped {
    plan::Plan plan;  // in force
    std::vector<Seat> seats;
  };
  // No member records from about now on.
  absl::StatusOr<Stopped> stop();

  // What that member has recorded; it forgets it. DeadlineExceeded: it does not answer.
  absl::StatusOr<trace::Recording> fetch(uint32_t seat, absl::Duration timeout);

  // Goes: members that wait until their events are fetched need wait no longer.
  void close();

  // record() and wait() return at once, now and from now on.
  void interrupt();

 private:
  Observer(const Env& env, JoinOptions options);
  absl::Status introduce();
  void send(TraceOrder order, uint32_t seat = 0);
  // The next message; null when none comes by then, or interrupt() was called and `may_interrupt`.
  absl::StatusOr<const v1::CoordinatorMessage*> next(absl::Duration deadline, bool may_interrupt);
  absl::Status failed(const absl::Status& status) const;
  absl::Duration now() const { return env_.clock->since_start(); }

  const Env env_;
  const JoinOptions options_;
  Introduction introduction_;
  Stream stream_;
  Progress progress_;
  std::atomic<bool> interrupted_{false};
};

}  // namespace gleaner::member
