// RankIo is a rank's work on its I/O thread "gln-io" (io_loop.h): the rounds of its pipeline, the coordinator's events,
// the requests (request_flow.h), and the figures that it publishes.
//
// Threads. The turn of the loop guards all of it. Other threads call the public functions, which post to the I/O
// thread or wait for the turn. While the I/O thread waits, push_pull() takes the turn and begins a single small request
// on the caller's thread, and call() starts a small call there, which saves a switch between threads. Lock order: the
// turn before any other lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "comm-lib/executor/calls.h"
#include "comm-lib/pipeline/pipeline.h"
#include "comm-lib/runtime/config.h"
#include "comm-lib/runtime/handles.h"
#include "comm-lib/runtime/io_loop.h"
#include "comm-lib/runtime/rank_stages.h"
#include "comm-lib/runtime/rank_state.h"
#include "comm-lib/runtime/request_flow.h"
#include "comm-lib/runtime/statistics.h"
#include "common/member/client.h"
#include "common/member/listener.h"

namespace gleaner::runtime {

class RankIo : public member::Listener,
               private pipeline::Listener,
               private network::NetworkListener,
               private IoLoop::Work {
 public:
  // All pointers must outlive this object.
  RankIo(const Env& env, RankState* state, Declarations* declarations, Handles* handles, Statistics* statistics);

  // Makes the pipeline. Errors are those of make_stages().
  absl::Status open(const Config& config, const kernels::Kernels* kernels);
  // Returns the network stage, which the thread has not started to use yet; null on local ranks above 0.
  const network::NetworkStage* network() const { return network_; }
  // Starts the thread. `client` must live until stop() returns. ResourceExhausted: see start_thread().
  absl::Status start(member::Client* client);
  // Ends the thread, which first runs what was posted before.
  void stop() { loop_.stop(); }

  // The functions below may be called by any thread.
  //
  // Has the I/O thread handle an event of the coordinator.
  void on_event(const member::Event& event) override;
  // Begins a request.
  void push_pull(DeclaredRequest request) ABSL_LOCKS_EXCLUDED(loop_.turn());
  // Ends the session with an error that concerns all ranks, such as a failure of the GPU.
  void end_session(const absl::Status& why) { on_failed(why); }
  // Make a group of workers, remove it, and start a call of it, whose id is a handle. FailedPrecondition: the worker
  // has several local ranks.
  absl::Status add_group(uint32_t group, std::vector<uint32_t> members) ABSL_LOCKS_EXCLUDED(loop_.turn());
  absl::Status remove_group(uint32_t group) ABSL_LOCKS_EXCLUDED(loop_.turn());
  void call(executor::Call call) ABSL_LOCKS_EXCLUDED(loop_.turn());
  // Returns the text of executor::Calls::describe() for the call with this handle.
  std::string describe_call(uint64_t handle) ABSL_LOCKS_EXCLUDED(loop_.turn());
  // Returns whether another member has sent something for this rank's next call of a group.
  bool has_arrived(uint32_t group) ABSL_LOCKS_EXCLUDED(loop_.turn());
  // Ends a step of the program.
  void step();
  // Counts bytes of gradients that the program does not send in this step.
  void save(int64_t bytes);
  absl::Status register_memory(MutableBytes memory) ABSL_LOCKS_EXCLUDED(loop_.turn());
  // Waits up to 2 s for requests of this memory. FailedPrecondition if some are still in flight.
  absl::Status unregister_memory(const void* begin) ABSL_LOCKS_EXCLUDED(loop_.turn());
  // Returns tensor_plan() of the tensor with this name. FailedPrecondition: no plan in force has it.
  absl::StatusOr<std::string> tensor_plan(const std::string& name) ABSL_LOCKS_EXCLUDED(loop_.turn());
  // Has the rank observe anew whether any member needs it, under the latest plan that it knows (RankState::set_quiet).
  // No further request may begin. Waits up to 2 s for the thread.
  void begin_to_leave();
  // Sends the last report to the coordinator. Waits up to 2 s for the thread.
  void send_last_report();

 private:
  // The state of the other members, as the I/O thread saw it in its last round.
  struct Observation {
    bool connected = false;  // to all members of the plan in force
    bool quiet = false;      // no member needs this rank, which is leaving, any more
    bool measured = false;   // the overhead of a message is known
    friend bool operator==(const Observation&, const Observation&) = default;
  };

  // Starts the calls of groups that this rank has made before, so that their groups know them.
  void start_posted_calls() ABSL_EXCLUSIVE_LOCKS_REQUIRED(loop_.turn());

  // pipeline::Listener and NetworkListener, with the turn held. on_failed() posts, so that no stage fails in the middle
  // of its own work.
  void on_done(uint64_t handle, const absl::Status& status) override { flow_.on_done(handle, status); }
  void on_failed(const absl::Status& status) override;
  void on_lost(uint32_t member, bool ends_job, const absl::Status& why) override;
  void on_called(uint64_t handle, const absl::Status& outcome) override { flow_.on_called(handle, outcome); }
  void on_owner_follows(uint32_t epoch, bool by_rank) override { client_->on_owner_follows(epoch, by_rank); }

  // IoLoop::Work.
  IoLoop::Load run_round() override;
  void after_round() override { deliver_outcomes(delivering_); }
  void wait_for_work(absl::Duration timeout) override { pipeline_->wait(timeout); }
  void wake() override { pipeline_->wake(); }

  absl::Status check_groups() const;
  bool begin_here(DeclaredRequest& request) ABSL_LOCKS_EXCLUDED(loop_.turn());
  bool call_here(const executor::Call& call) ABSL_LOCKS_EXCLUDED(loop_.turn());
  void finish_here(bool has_begun) ABSL_UNLOCK_FUNCTION(loop_.turn());
  void deliver_outcomes(std::vector<Outcome>& outcomes);  // to handles_; also empties `outcomes`
  void post_and_wait(std::function<void()> message);

  // Called with the turn held. handle() handles an event of the coordinator. pass_on() gives an event to the pipeline;
  // an error ends the session.
  void handle(const control::Welcome& welcome);
  void handle(const control::Prepare& prepare);
  void handle(const control::Commit& commit);
  void handle(const member::CoordinatorLost& lost);
  void handle(const member::CoordinatorFound& found) { pass_on(found); }
  void handle(const member::CoordinatorGone& gone) { pass_on(gone); }
  void handle(const control::Ending& ending) { pass_on(ending); }
  void handle(const control::Failed& failed) { fail(failed.status); }
  void handle(const control::Regroup& regroup);
  void handle(const control::Newcomers& newcomers) { state_.set_newcomers(newcomers.workers); }
  void handle(const control::Finished&) {}  // concerns summers
  void handle(const control::Withdraw& withdraw) { pass_on(withdraw); }
  void handle(const control::CountPushPulls&);
  void handle(const control::Inquire& inquire) { client_->begun(inquire.tensor, flow_.started(inquire.tensor)); }
  void handle(const control::Trace& trace);
  bool pass_on(const pipeline::Event& event);
  void fail(absl::Status status);
  void observe();
  // `is_urgent`: the coordinator needs the report now.
  void publish(absl::Duration now, bool connected, bool is_urgent);
  control::Report report(absl::Duration now, bool last);

  const Env env_;
  RankState& state_;
  Handles& handles_;
  Statistics& statistics_;
  trace::Recorder recorder_;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
  encoding::EncodingStage* encoding_ = nullptr;
  network::NetworkStage* network_ = nullptr;
  RequestFlow flow_;
  member::Client* client_ = nullptr;
  Observation observed_;
  bool leaving_ = false;             // begin_to_leave() was called
  std::vector<Outcome> delivering_;  // of the last round; used by the I/O thread only
  IoLoop loop_;
};

}  // namespace gleaner::runtime
