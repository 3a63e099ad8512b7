// A member's end of the coordinator's stream: joins, declares tensors, follows plans, reports, leaves.
//
// Workers (every local rank of them) and summers use it alike. The stream is gRPC (common/proto/coordinator.proto); a
// thread of its own, named "gln-coord", reads it and calls the listener. All functions are thread safe and return at
// once, except leave(), come_again() and stop(), which wait.
//
// A coordinator that can be replaced names a session. If it is lost, the client looks for a coordinator until leave()
// or stop(), with pauses from 0.2 to 5 s; before the first commit it does so until the join's timeout. The coordinator
// that answers takes the job up from what the members hold (docs/protocol.md, Re-attachment).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/base/env.h"
#include "common/plan/plan.h"
#include "common/trace/recorder.h"
#include "common/wire/handshake.h"

namespace gleaner::member {

enum class Role { kWorker, kSummer, kObserver };

struct JoinOptions {
  Address coordinator;
  std::string job = "default";
  std::string token;          // contents of the token file, whitespace trimmed
  std::string token_file;     // read anew for each connection that asks for a bearer token; empty: `token` is it
  std::string ca_file;        // PEM, read anew for each connection: speak TLS to whom these vouch for; empty: no TLS
  Role role = Role::kWorker;  // Client: not kObserver
  std::optional<uint32_t> index;  // worker index, or summer index; a summer without one is given the next
  uint32_t local_rank = 0;        // workers
  uint32_t local_size = 1;
  std::string address;                         // where this member's summer listens; empty for local ranks > 0
  std::vector<std::string> endpoints;          // and by which transports (common/transport/endpoint.h)
  double bits_per_second = 0;                  // 0: not known, the coordinator's --bandwidth counts
  absl::Duration timeout = absl::Seconds(60);  // until everybody has joined
  // That a tensor which no plan has yet waits for a coordinator that is out of reach, before the job fails.
  absl::Duration plan_timeout = absl::Minutes(10);
};

// What the coordinator tells a member that it let in.
struct Welcome {
  uint32_t member = 0;  // index in every plan of this job
  uint32_t workers = 0;
  uint32_t local_ranks = 1;
  uint32_t summers = 0;
  bool elastic = false;     // n may change: whoever is told to regroup comes again
  wire::Secret secret{};    // for data connections
  absl::Duration deadline;  // how long a silent peer is tolerated

  friend bool operator==(const Welcome&, const Welcome&) = default;
};

// The oldest push_pull of a rank that is not done.
struct Waiting {
  std::string tensor;
  uint64_t step = 0;       // of that tensor; 0 also before a plan has it
  absl::Duration elapsed;  // since it was asked for
};

// What a rank did in one epoch, between the first and the last moment under its plan at which a step had ended: a step
// that spans a change of plan counts for neither. Compared with the bound, these figures can't come out too good.
struct Measured {
  uint32_t epoch = 0;
  uint64_t steps = 0;
  uint64_t bytes = 0;                // gradient bytes reduced by push_pulls that began and ended in that time
  uint64_t open_bytes = 0;           // in flight at its end: a difference from here on must leave them out
  double communication_seconds = 0;  // time with at least one push_pull in flight
  friend bool operator==(const Measured&, const Measured&) = default;
};

// Cumulative since the start of the job, by one rank.
struct Report {
  uint64_t steps = 0;
  uint64_t bytes = 0;                // gradient bytes reduced, not wire bytes
  double communication_seconds = 0;  // time with at least one push_pull in flight
  std::optional<Waiting> waiting;    // where a push_pull takes long
  std::vector<Measured> measured;    // of the latest epochs with steps, in order
  double round_trip_seconds = 0;     // to the farthest summer, at best; 0: not measured
};

enum class TraceOrder { kRecord, kStop, kSend, kForget };  // as in coordinator.proto

// Carries it out; gives back what is to be sent.
std::optional<trace::Recording> obey(TraceOrder order, trace::Recorder& recorder);

class Listener {
 public:
  virtual ~Listener() = default;
  // Again, with other contents, when the job turns out otherwise before the first commit: forget what was prepared.
  virtual void on_welcome(const Welcome& welcome) = 0;
  // A validated plan to get ready for; answer by Client::acknowledge(epoch) or refuse(epoch, why). It takes the place
  // of one that was prepared before, and may be the same once more.
  virtual void on_prepare(std::shared_ptr<const plan::Plan> plan) = 0;
  virtual void on_commit(uint32_t epoch) = 0;
  // The job can't go on (a member is lost, declarations differ, a start did not complete ...): the status names who and
  // what. Also when the coordinator is out of reach before the first commit. Last callback.
  virtual void on_failed(const absl::Status& status) = 0;
  // The round of an elastic job is over, by a worker that is lost; the status names it. Leave by Client::come_again(),
  // and begin anew to join. Last callback.
  virtual void on_regroup(const absl::Status& status) { on_failed(status); }
  // So many workers wait for the next round of this elastic job.
  virtual void on_newcomers(uint32_t /*workers*/) {}
  // A worker has left well: no sum can be made any more, and everybody has those that were.
  virtual void on_ending() {}
  // Every worker left, or this summer is not needed any more: summers may go. Last callback.
  virtual void on_finished() = 0;
  // The coordinator is out of reach after the first commit. What is planned goes on. Tensors that no plan has yet wait:
  // on_failed() follows if it does not come back within plan_timeout, or at once if it can't.
  virtual void on_coordinator_lost() {}
  // The same, and none will ever take its place: it named no session, or one that answers there has begun another job.
  // Follows on_coordinator_lost(), at once or later.
  virtual void on_coordinator_gone(const absl::Status& /*why*/) {}
  // It is back, or another in its place.
  virtual void on_coordinator_found() {}
  // Some rank waits for a sum of this tensor. Answer by Client::begun() how many of its push_pulls have begun here.
  virtual void on_inquired(const std::string& /*tensor*/) {}
  // Somebody traces this job. Answer kSend by Client::send_trace(recording, ...). Comes also while this member leaves.
  virtual void on_trace(TraceOrder /*order*/, uint64_t /*recording*/) {}
};

class Client {
 public:
  // Begins to join; callbacks follow from the client's thread, until stop() or the destructor returns.
  static absl::StatusOr<std::unique_ptr<Client>> start(const Env& env, const JoinOptions& options, Listener* listener);
  virtual ~Client() = default;

  // Tensors that this rank is going to reduce. When every rank has declared a tensor alike, a plan with it follows by
  // on_prepare(). Declaring the same tensor again alike is harmless.
  void declare(const std::vector<plan::Tensor>& tensors) { declare(tensors, {}); }
  // Also says what the first push_pulls of tensors, declared here or before, ask for: ranks that differ in that fail
  // the job by an error that names them.
  virtual void declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations) = 0;
  virtual void acknowledge(uint32_t epoch) = 0;
  virtual void refuse(uint32_t epoch, const absl::Status& why) = 0;
  // Sent along with heartbeats, and at the latest by leave().
  virtual void report(const Report& report) = 0;
  virtual void begun(const std::string& tensor, uint64_t push_pulls) = 0;
  // This member can't go on with `member` (a plan index): the coordinator leaves a CPU summer out of the next plan,
  // else it fails the job and tells everyone.
  virtual void fault(uint32_t member, const absl::Status& why) = 0;
  // An owner of partitions follows the plan of `epoch`; `by_rank`: the owner is a worker's summer. While there is no
  // coordinator to commit a plan that is prepared, on_commit() follows from this.
  virtual void saw(uint32_t epoch, bool by_rank) = 0;
  virtual void send_trace(uint64_t recording, trace::Recording what) = 0;
  // Says good-bye; `status` not OK: this member failed. A worker waits until the coordinator has heard it: up to the
  // job's deadline while it is connected, for it may only be slow, and up to `timeout` for one that is lost to come
  // back. False: a plan was committed before the coordinator had heard it, so that this worker may be needed once more;
  // leave again when nothing is in flight under that plan. A summer does not wait, and goes on following plans until
  // on_finished(): there is one without it by then.
  virtual bool leave(const absl::Status& status, absl::Duration timeout) = 0;
  // leave() of a worker that is going to join the next round of an elastic job, whose coordinator waits for that.
  virtual bool come_again(const absl::Status& status, absl::Duration timeout) = 0;
  // No callback runs after this returned.
  virtual void stop() = 0;
};

}  // namespace gleaner::member
