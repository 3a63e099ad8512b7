// Observer is the client of `gleaner trace` and `gleaner status`. It is not a member of the job; it fetches the
// recordings of the job's members, or reads the job's summary.
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
#include "common/control/trace_order.h"
#include "common/member/introduction.h"
#include "common/member/join_options.h"
#include "common/member/stream.h"
#include "common/plan/plan.h"
#include "common/trace/event.h"

namespace gleaner::member {

class Observer {
 public:
  // Joins with the coordinator, job, token and files of `options`, and waits for Welcome up to options.timeout.
  static absl::StatusOr<std::unique_ptr<Observer>> join(const Env& env, JoinOptions options);

  // Joins as join() does, returns the summary of the job as JSON (coordinator/status/summary.h), and leaves. A job has
  // any number of such observers.
  static absl::StatusOr<std::string> read_summary(const Env& env, JoinOptions options);

  // Has all members record, from about now on. Waits until the job has begun. Cancelled: interrupt() was called.
  absl::Status record();

  struct Progress {
    uint64_t steps = 0;   // of the job, by the members' last reports: up to some seconds old
    bool ending = false;  // members want to leave, and wait up to 1.7 s for stop() and fetch()
    bool interrupted = false;
  };
  // Waits until the progress has changed, for `timeout` at most.
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
  // Has all members stop recording, from about now on.
  absl::StatusOr<Stopped> stop();

  // Returns the recording of the member in this seat, which then forgets it. DeadlineExceeded: the member does not
  // answer.
  absl::StatusOr<trace::Recording> fetch(uint32_t seat, absl::Duration timeout);

  // Ends the stream, so that members that are held back until their recordings are fetched may leave.
  void close();

  // Makes record() and wait() return without a wait, from now on.
  void interrupt();

 private:
  Observer(const Env& env, JoinOptions options);
  absl::Status introduce();
  void send(control::TraceOrder order, uint32_t seat = 0);
  // Returns the next message; null if none comes before `deadline`, or if interrupt() was called and `may_interrupt` is
  // set.
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
