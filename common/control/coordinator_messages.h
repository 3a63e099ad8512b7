// The messages of the coordinator to a member that has joined. Plain values; coordinator.proto says when each is sent.
// A stream ends after Failed, Finished and Goodbye.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/control/heartbeat.h"
#include "common/control/trace_order.h"
#include "common/plan/plan.h"
#include "common/wire/handshake.h"

namespace gleaner::control {

// The coordinator's data for a member that it admits. It travels as a part of Admission (handshake.h). The
// coordinator's core knows the first four fields. The driver of the core adds the next four. The secret stays empty in
// the coordinator: the member fills it in, once the coordinator has proved that it belongs to this job.
struct Welcome {
  uint32_t member = 0;   // index in every plan of this job
  uint32_t summers = 0;  // k as far as it is known at this time; the count in the plan is authoritative
  std::string session;   // id of this job, to be shown in Resume; empty: no other coordinator can take up the job
  uint64_t term = 0;     // of this coordinator; one that replaces it has a higher term

  uint32_t workers = 0;
  uint32_t local_ranks = 1;
  bool elastic = false;     // n may change: a worker whose round has ended joins again
  absl::Duration deadline;  // a peer that is silent for longer is lost

  wire::Secret secret{};  // of data connections
  friend bool operator==(const Welcome&, const Welcome&) = default;
};
// Asks a member for the plan that it follows.
struct Recall {
  friend bool operator==(const Recall&, const Recall&) = default;
};
// The member prepares `plan`, and answers by Acknowledgement or Refusal.
struct Prepare {
  std::shared_ptr<const plan::Plan> plan;  // never null
  friend bool operator==(const Prepare& a, const Prepare& b) { return *a.plan == *b.plan; }
};
// The prepared plan of this epoch comes into force.
struct Commit {
  uint32_t epoch = 0;
  friend bool operator==(const Commit&, const Commit&) = default;
};
// The prepared plan of this epoch will never be committed: the member forgets it. Every member gets it that may have
// prepared the plan, also one that returns with a plan (Resume::prepared) that the coordinator neither has committed
// nor has it prepare again. A worker that has prepared a plan that changes strategies holds push_pulls until then. The
// member ignores it if it has prepared another plan or none.
struct Withdraw {
  uint32_t epoch = 0;
  friend bool operator==(const Withdraw&, const Withdraw&) = default;
};
// A rank has left cleanly: no further sum can be made. Every rank has the results of those that owners have made.
struct Ending {
  std::vector<uint32_t> left;  // member indices of workers that have left and were not named before
  friend bool operator==(const Ending&, const Ending&) = default;
};
// The job can't go on. The status names the member and the reason.
struct Failed {
  absl::Status status;
  friend bool operator==(const Failed&, const Failed&) = default;
};
// The round of an elastic job has ended: the member leaves it and joins again.
struct Regroup {
  absl::Status why;
  friend bool operator==(const Regroup&, const Regroup&) = default;
};
// How many waiting workers the next round of an elastic job has room for.
struct Newcomers {
  uint32_t workers = 0;
  friend bool operator==(const Newcomers&, const Newcomers&) = default;
};
// Asks a rank how many push_pulls of this tensor it has begun, because some rank waits for a result of the tensor.
struct Inquire {
  std::string tensor;
  friend bool operator==(const Inquire&, const Inquire&) = default;
};
// Asks local rank 0 of a worker how many push_pulls of each tensor it has begun.
struct CountPushPulls {
  friend bool operator==(const CountPushPulls&, const CountPushPulls&) = default;
};
// Every worker has left, so summers end.
struct Finished {
  friend bool operator==(const Finished&, const Finished&) = default;
};
// The answer to Leave, or the release of a summer that is not needed any more.
struct Goodbye {
  friend bool operator==(const Goodbye&, const Goodbye&) = default;
};

using CoordinatorMessage = std::variant<Heartbeat, Recall, Prepare, Commit, Withdraw, Ending, Failed, Regroup,
                                        Newcomers, Inquire, CountPushPulls, Trace, Finished, Goodbye>;

}  // namespace gleaner::control
