// Rank is one rank of a job: the implementation of a gln_session. It connects the parts, each of which has one duty:
// the I/O thread (io_loop.h), the requests (request_table.h) and their way to the summers and back (stages.h), the
// state that users see (rank_state.h), the figures (statistics.h), and the stream to the coordinator (common/member).
//
// Threads. User threads call the public functions, which check their arguments and post to the I/O thread. The
// coordinator's thread ("gln-coord") posts its messages to the I/O thread, too. While the I/O thread waits, a user
// thread takes the turn and begins a single small request itself, which saves a switch between threads. Lock order: the
// turn before any other lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "comm-lib/runtime/config.h"
#include "comm-lib/runtime/declarations.h"
#include "comm-lib/runtime/handles.h"
#include "comm-lib/runtime/io_loop.h"
#include "comm-lib/runtime/rank_state.h"
#include "comm-lib/runtime/request_table.h"
#include "comm-lib/runtime/stages.h"
#include "comm-lib/runtime/statistics.h"

namespace gleaner::runtime {

class Rank : private member::Listener, private StagesListener, private IoLoop::Work {
 public:
  // Joins the job, and returns when every member has joined and is connected. DeadlineExceeded: this has taken 5 s
  // longer than the open timeout; the message names the missing members.
  static absl::StatusOr<std::unique_ptr<Rank>> open(const Config& config);
  ~Rank() override;

  gln_rank_info rank_info() const { return state_.rank_info(); }
  gln_stats stats() const { return state_.stats(); }
  // Returns the text of Network::describe_transports(), up to 250 ms old; empty on local ranks above 0.
  std::string transports() const { return state_.transports(); }
  // Returns the number of workers that wait for the next round of an elastic job.
  uint32_t newcomers() const { return state_.newcomers(); }

  absl::StatusOr<uint32_t> declare(plan::Tensor tensor);
  absl::StatusOr<uint64_t> push_pull(uint32_t tensor, const void* input, void* output, ReduceOp op);
  Handles& handles() { return handles_; }
  // Calls Handles::wait(), and counts the time waited unless the request was done before.
  absl::Status wait(uint64_t handle, absl::Duration timeout, absl::Status* outcome);
  // Counts time that the program has waited for requests in other ways.
  void add_wait(absl::Duration time) { statistics_.add_wait(time); }
  void step();

  absl::Status register_memory(MutableBytes memory) ABSL_LOCKS_EXCLUDED(loop_.turn());
  // Waits up to 2 s for requests of this memory. FailedPrecondition if some are still in flight.
  absl::Status unregister_memory(const void* begin) ABSL_LOCKS_EXCLUDED(loop_.turn());

  // Leaves the job and ends the session: only the destructor may follow. kToReturn: this process will join the job's
  // next round.
  enum class Leave { kCleanly, kFailed, kToReturn };
  absl::Status close(Leave how);

 private:
  // The state of the other members, as the I/O thread saw it in its last round.
  struct Observation {
    bool connected = false;  // to all members of the plan in force
    bool quiet = false;      // no member needs this rank, which is closing, any more
    friend bool operator==(const Observation&, const Observation&) = default;
  };

  explicit Rank(const Config& config);
  absl::Status join();
  absl::Status wait_for_all_ranks();
  absl::Status wait_until_quiet();
  void send_last_report();
  void stop();

  // member::Listener, on the coordinator's thread. Posts the event to the I/O thread, which calls handle().
  void on_event(const member::Event& event) override;
  void handle(const control::Welcome& welcome);
  void handle(const control::Prepare& prepare);
  void handle(const control::Commit& commit);
  void handle(const control::Failed& failed) { fail(failed.status); }
  void handle(const control::Regroup& regroup);
  void handle(const control::Newcomers& newcomers) { state_.set_newcomers(newcomers.workers); }
  void handle(const control::Ending&) { stages_->set_ending(); }
  void handle(const control::Finished&) {}
  void handle(const member::CoordinatorLost& lost);
  void handle(const member::CoordinatorFound&) { stages_->on_coordinator_found(); }
  void handle(const member::CoordinatorGone& gone) { stages_->on_coordinator_gone(gone.why); }
  void handle(const control::Inquire& inquire);
  void handle(const control::Trace& trace);

  // StagesListener, with the turn held. on_failed() posts to the I/O thread.
  void on_failed(const absl::Status& status) override;
  void on_done(uint64_t handle, const absl::Status& status) override;
  void on_lost(uint32_t member, bool ends_job, const absl::Status& why) override;
  void on_owner_follows(uint32_t epoch, bool by_rank) override { client_->on_owner_follows(epoch, by_rank); }

  // IoLoop::Work.
  IoLoop::Load run_round() override;
  void after_round() override { deliver_outcomes(delivering_); }
  void wait_for_work(absl::Duration timeout) override { stages_->wait(timeout); }
  void wake() override { stages_->wake(); }

  bool begin_here(DeclaredRequest& state) ABSL_LOCKS_EXCLUDED(loop_.turn());
  void deliver_outcomes(std::vector<Outcome>& outcomes);  // to handles_; also empties `outcomes`

  // Called with the turn held.
  void begin(DeclaredRequest state);
  void start(const Request& request);
  void note_end(const DeclaredRequest& ended, bool ok);
  void record(trace::Kind kind, const Request& request, absl::Duration when);
  void fail(absl::Status status);
  void observe();
  void publish(absl::Duration now, bool connected);
  control::Report report(absl::Duration now, bool last);

  const Config config_;
  SystemEnv system_;
  const Env& env_;
  std::optional<kernels::Kernels> kernels_;
  Declarations declarations_;
  Handles handles_;
  RankState state_;
  Statistics statistics_;  // add_wait(): any thread

  // The turn of loop_ guards the members from here to delivering_.
  trace::Recorder recorder_;
  std::unique_ptr<Stages> stages_;
  std::shared_ptr<const plan::Plan> prepared_;
  std::shared_ptr<const plan::Plan> plan_;
  RequestTable requests_;
  Observation observed_;
  bool closing_ = false;  // close() was called: no further request begins

  std::vector<Outcome> delivering_;  // of the last round; used by the I/O thread only
  IoLoop loop_;
  std::unique_ptr<member::Client> client_;
};

}  // namespace gleaner::runtime
