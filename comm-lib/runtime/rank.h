// One rank of a job: everything behind a gln_session.
//
// Threads: users' threads call the public functions; they check, note, and post to the I/O thread ("gln-io"), which
// owns the network (local rank 0) and the sums over local ranks (g > 1); the coordinator's thread ("gln-coord") posts
// what it hears. The I/O thread lets go of what it owns while it waits: then the thread that asks for a small push_pull
// begins it itself, so that it leaves without a hand-over between threads. Lock order: turn_, then any other.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "comm-lib/runtime/config.h"
#include "comm-lib/runtime/declarations.h"
#include "comm-lib/runtime/handles.h"
#include "comm-lib/runtime/meter.h"
#include "comm-lib/runtime/metrics.h"
#include "comm-lib/runtime/stages.h"
#include "common/base/mailbox.h"

namespace gleaner::runtime {

class Rank : private member::Listener, private Stages::Events {
 public:
  // Joins the job and returns when every member is there and connected. DeadlineExceeded says who is missing.
  static absl::StatusOr<std::unique_ptr<Rank>> open(const Config& config);
  ~Rank() override;

  gln_topology topology() const;
  gln_stats stats() const ABSL_LOCKS_EXCLUDED(mutex_);
  // As Network::describe_transports(), some 250 ms old; empty on local ranks above 0.
  std::string transports() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<uint32_t> declare(plan::Tensor tensor);
  absl::StatusOr<uint64_t> push_pull(uint32_t tensor, const void* input, void* output, ReduceOp op);
  absl::Status broadcast(const std::string& name, MutableBytes data, uint32_t root);
  absl::Status register_memory(MutableBytes memory) ABSL_LOCKS_EXCLUDED(turn_);
  // Once nothing refers to it any more. FailedPrecondition: push_pulls of it are in flight.
  absl::Status unregister_memory(const void* begin) ABSL_LOCKS_EXCLUDED(turn_);
  void step();
  Handles& handles() { return handles_; }
  // Handles::wait(), with its time counted where the push_pull was not done already.
  absl::Status wait(uint64_t handle, absl::Duration timeout, absl::Status* outcome);

  // Workers that wait for the next round of an elastic job.
  uint32_t newcomers() const { return newcomers_; }

  // Ends the session: nothing but the destructor may follow. kAgain: this process is going to join the job's next
  // round.
  enum class Leave { kWell, kFailed, kAgain };
  absl::Status close(Leave how) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A push_pull on its way, by handle.
  struct Flight {
    uint32_t tensor = 0;  // id on this rank
    plan::Tensor what;
    ReduceOp op = ReduceOp::kSum;
    const void* input = nullptr;
    void* output = nullptr;
    absl::Duration asked;  // when
    uint32_t planned = 0;  // index in the plan, once launched
    uint64_t step = 0;
  };
  struct Outcome {
    uint64_t handle = 0;
    absl::Status status;
  };
  enum class Phase { kOpening, kOpen, kFailed, kClosed };

  explicit Rank(const Config& config);
  absl::Status join();
  absl::Status wait_until_open() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status usable() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status meet() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status await_quiet() ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_elastic() const ABSL_LOCKS_EXCLUDED(mutex_);
  void report_now();
  void stop();

  // The coordinator's thread; on_failed() also comes from the stages, on the I/O thread. All post.
  void on_welcome(const member::Welcome& welcome) override;
  void on_prepare(std::shared_ptr<const plan::Plan> plan) override;
  void on_commit(uint32_t epoch) override;
  void on_failed(const absl::Status& status) override;
  void on_regroup(const absl::Status& status) override;
  void on_newcomers(uint32_t workers) override { newcomers_ = workers; }
  void on_finished() override;
  void on_ending() override;
  void on_coordinator_lost() override;
  void on_coordinator_found() override;
  void on_coordinator_gone(const absl::Status& why) override;
  void on_inquired(const std::string& tensor) override;
  void on_trace(member::TraceOrder order, uint64_t recording) override;

  // The I/O thread, or whoever has the turn.
  void run();
  absl::Duration patience();
  bool begin_here(uint64_t handle, Flight& flight) ABSL_LOCKS_EXCLUDED(turn_);
  void welcome(const member::Welcome& welcome);
  void prepare(std::shared_ptr<const plan::Plan> plan);
  void commit(uint32_t epoch);
  void begin(uint64_t handle, Flight flight);
  void launch(uint64_t handle, Flight& flight, uint32_t planned);
  void record(trace::Kind kind, const Flight& flight, absl::Duration when);
  void finish(uint64_t handle, const absl::Status& status);
  void tell(std::vector<Outcome>& outcomes);  // empties it
  void fail(absl::Status status) ABSL_LOCKS_EXCLUDED(mutex_);
  void observe() ABSL_LOCKS_EXCLUDED(mutex_);
  // `last`: nothing follows.
  member::Report report(absl::Duration now, bool last = false);
  void on_done(uint64_t handle, const absl::Status& status) override;
  void on_lost(uint32_t member, bool ends_job, const absl::Status& why) override;
  void on_owner_follows(uint32_t epoch, bool by_rank) override { client_->saw(epoch, by_rank); }

  const Config config_;
  SystemEnv system_;
  const Env& env_;
  std::optional<kernels::Kernels> kernels_;
  Declarations declarations_;
  Handles handles_;
  std::atomic<int64_t> waited_nanoseconds_ = 0;  // of all callers, in wait()

  // Held by who works on what follows: the I/O thread but for its waits.
  absl::Mutex turn_;
  trace::Recorder recorder_;
  std::unique_ptr<Stages> stages_;
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> plan_;
  std::unordered_map<std::string, uint32_t> planned_;  // name to index in plan_
  std::unordered_map<uint64_t, Flight> flights_;
  std::vector<uint64_t> steps_;      // that were launched, by index in plan_
  std::vector<uint64_t> unplanned_;  // handles that wait for a plan with their tensor
  Meter meter_;
  std::unique_ptr<RankMetrics> metrics_;  // if asked for
  absl::Duration last_observation_;
  bool closing_ = false;  // it begins nothing more
  bool seen_quiet_ = false;
  bool seen_connected_ = false;
  absl::Duration last_busy_;
  bool asleep_ = false;            // the I/O thread waits for longer than pushes on their way may
  std::vector<Outcome> outcomes_;  // told when the turn is over

  Mailbox mailbox_;
  std::unique_ptr<member::Client> client_;
  std::thread thread_;

  mutable absl::Mutex mutex_;
  Phase phase_ ABSL_GUARDED_BY(mutex_) = Phase::kOpening;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool quiet_ ABSL_GUARDED_BY(mutex_) = false;  // nobody needs anything of us
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_) = "the coordinator";
  member::Welcome welcome_ ABSL_GUARDED_BY(mutex_);  // set once, before kOpen
  gln_stats stats_ ABSL_GUARDED_BY(mutex_) = GLN_STATS_INIT;
  std::string transports_ ABSL_GUARDED_BY(mutex_);
  std::atomic<uint32_t> newcomers_{0};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> accumulates_{false};  // some tensor does
};

}  // namespace gleaner::runtime
