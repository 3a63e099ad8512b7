#include "comm-lib/runtime/rank_io.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "comm-lib/runtime/tensor_plan.h"
#include "comm-lib/runtime/workers_changed.h"
#include "common/base/status_macros.h"
#include "common/member/trace_order.h"

namespace gleaner::runtime {
namespace {

// The largest request that the caller's thread begins itself. That takes some microseconds.
constexpr size_t kBeginHereBytes = 64 << 10;
constexpr absl::Duration kPostTimeout = absl::Seconds(2);
constexpr absl::Duration kReturnTimeout = absl::Seconds(2);  // for requests to release their memory

}  // namespace

RankIo::RankIo(const Env& env, RankState* state, Declarations* declarations, Handles* handles, Statistics* statistics)
    : env_(env),
      state_(*state),
      handles_(*handles),
      statistics_(*statistics),
      recorder_(env.clock),
      flow_(env.clock, state, declarations, statistics, &recorder_),
      loop_(env.clock, Statistics::kEvery, this) {}

absl::Status RankIo::open(const Config& config, const kernels::Kernels* kernels) {
  GLN_ASSIGN_OR_RETURN(RankStages stages, make_stages(env_, config, kernels, &recorder_, this));
  encoding_ = stages.encoding;
  network_ = stages.network;
  GLN_ASSIGN_OR_RETURN(pipeline_, pipeline::Pipeline::create(std::move(stages.list), this));
  flow_.set_pipeline(pipeline_.get());
  return absl::OkStatus();
}

absl::Status RankIo::start(member::Client* client) {
  client_ = client;
  return loop_.start();
}

void RankIo::on_event(const member::Event& event) {
  loop_.post([this, event] { std::visit([this](const auto& each) { handle(each); }, event); });
}

void RankIo::push_pull(DeclaredRequest request) {
  if (begin_here(request)) return;
  loop_.post([this, request = std::move(request)]() mutable { flow_.begin(std::move(request)); });
}

// Begins a request on the caller's thread if it is small and the only one in flight. The I/O thread sends several
// requests together.
bool RankIo::begin_here(DeclaredRequest& request) {
  const bool is_small = request.tensor.memory_bytes() <= kBeginHereBytes && request.request.access.is_host();
  if (!is_small || !pipeline_->starts_on_any_thread() || !loop_.turn().TryLock()) {
    return false;
  }
  const bool first = flow_.empty() && loop_.nothing_posted();
  if (first) flow_.begin(std::move(request));
  finish_here(first);
  return first;
}

// Ends the turn of a caller's thread, which has begun something or has not.
void RankIo::finish_here(bool has_begun) {
  bool must_wake = false;
  std::vector<Outcome> outcomes;
  if (has_begun) {
    pipeline_->advance();
    must_wake = loop_.is_asleep() || pipeline_->has_work();
    flow_.take_outcomes(outcomes);
  }
  loop_.turn().Unlock();
  deliver_outcomes(outcomes);
  if (must_wake) pipeline_->wake();
}

absl::Status RankIo::check_groups() const {
  if (state_.rank_info().local_ranks == 1) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "groups need workers of one rank each, and this job has several local ranks: start each rank as a worker");
}

absl::Status RankIo::add_group(uint32_t group, std::vector<uint32_t> members) {
  GLN_RETURN_IF_ERROR(check_groups());
  const absl::MutexLock lock(&loop_.turn());
  return network_->add_group(group, std::move(members));
}

bool RankIo::has_arrived(uint32_t group) {
  const absl::MutexLock lock(&loop_.turn());
  start_posted_calls();
  return network_->has_arrived(group);
}

absl::Status RankIo::remove_group(uint32_t group) {
  GLN_RETURN_IF_ERROR(check_groups());
  const absl::MutexLock lock(&loop_.turn());
  start_posted_calls();
  return network_->remove_group(group);
}

void RankIo::start_posted_calls() {
  if (loop_.nothing_posted()) return;
  loop_.drain();
  pipeline_->wake();
}

void RankIo::call(executor::Call call) {
  if (call_here(call)) return;
  loop_.post([this, call = std::move(call)] { network_->start_call(call); });
}

// Starts a small call on the caller's thread, unless the I/O thread has a round, or work that was posted before.
bool RankIo::call_here(const executor::Call& call) {
  const bool is_small = call.input.size() <= kBeginHereBytes && call.output.size() <= kBeginHereBytes;
  if (!is_small || !loop_.turn().TryLock()) return false;
  const bool starts = loop_.nothing_posted();
  if (starts) network_->start_call(call);
  finish_here(starts);
  return starts;
}

std::string RankIo::describe_call(uint64_t handle) {
  if (network_ == nullptr) return "";
  const absl::MutexLock lock(&loop_.turn());
  return network_->describe_call(handle);
}

void RankIo::step() {
  loop_.post([this] { statistics_.step(); });
}

void RankIo::save(int64_t bytes) {
  loop_.post([this, bytes] { statistics_.save(bytes); });
}

absl::Status RankIo::register_memory(MutableBytes memory) {
  const absl::MutexLock lock(&loop_.turn());
  return pipeline_->memory().add(memory);
}

absl::StatusOr<std::string> RankIo::tensor_plan(const std::string& name) {
  const absl::MutexLock lock(&loop_.turn());
  const std::shared_ptr<const plan::Plan>& plan = pipeline_->plan();
  const auto has_name = [&](const plan::Tensor& tensor) { return tensor.name == name; };
  if (plan != nullptr) {
    const auto found = std::ranges::find_if(plan->tensors, has_name);
    const auto index = static_cast<uint32_t>(found - plan->tensors.begin());
    if (found != plan->tensors.end()) return runtime::tensor_plan(*plan, index);
  }
  return absl::FailedPreconditionError(
      absl::StrCat("no plan has tensor '", name, "' yet; its first push_pull brings it into one"));
}

// Tries again for kReturnTimeout: transports may release a sent buffer some time after its result has arrived.
absl::Status RankIo::unregister_memory(const void* begin) {
  const absl::Duration until = env_.clock->since_start() + kReturnTimeout;
  while (true) {
    {
      const absl::MutexLock lock(&loop_.turn());
      absl::Status status = pipeline_->memory().remove(begin);
      if (!absl::IsUnavailable(status)) return status;
      if (env_.clock->since_start() > until) return absl::FailedPreconditionError(status.message());
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

// An earlier observation may be of an earlier plan. The I/O thread observes again after this message.
void RankIo::begin_to_leave() {
  post_and_wait([this] {
    leaving_ = true;
    observed_.quiet = false;
    state_.set_quiet(false);
  });
}

void RankIo::send_last_report() {
  post_and_wait([this] { client_->report(report(env_.clock->since_start(), true)); });
}

void RankIo::post_and_wait(std::function<void()> message) {
  auto done = std::make_shared<absl::Notification>();
  loop_.post([message = std::move(message), done] {
    message();
    done->Notify();
  });
  done->WaitForNotificationWithTimeout(kPostTimeout);
}

// after_round() reports outcomes to user threads after the turn is released, so that these can begin their next request
// in begin_here().
IoLoop::Load RankIo::run_round() {
  pipeline_->poll();
  loop_.drain();
  pipeline_->advance();
  observe();
  flow_.take_outcomes(delivering_);
  if (pipeline_->has_work()) return IoLoop::Load::kWork;
  const bool in_flight = statistics_.busy() || !pipeline_->connected() || !pipeline_->idle();
  return in_flight ? IoLoop::Load::kInFlight : IoLoop::Load::kIdle;
}

void RankIo::handle(const control::Welcome& welcome) {
  if (pass_on(welcome)) state_.set_welcome(welcome);
}

void RankIo::handle(const control::Prepare& prepare) {
  const uint32_t epoch = prepare.plan->epoch;
  if (const absl::Status status = pipeline_->on_event(prepare); !status.ok()) return client_->refuse(epoch, status);
  client_->acknowledge(epoch);
}

void RankIo::handle(const control::Commit& commit) {
  if (!pass_on(commit)) return;
  const plan::Plan& plan = *pipeline_->plan();
  statistics_.follow(commit.epoch, env_.clock->since_start());
  state_.set_summers(plan.summers());
  flow_.on_plan(plan);
}

void RankIo::handle(const member::CoordinatorLost& lost) {
  recorder_.forget();  // no observer can fetch the recording any more
  pass_on(lost);
}

bool RankIo::pass_on(const pipeline::Event& event) {
  const absl::Status status = pipeline_->on_event(event);
  if (!status.ok()) fail(status);
  return status.ok();
}

void RankIo::handle(const control::Regroup& regroup) { fail(workers_changed(regroup.why.message())); }

void RankIo::handle(const control::CountPushPulls&) {
  const std::shared_ptr<const plan::Plan>& plan = pipeline_->plan();
  if (plan != nullptr) client_->push_pulls(plan->epoch, flow_.started());
}

void RankIo::handle(const control::Trace& trace) {
  if (auto recorded = member::obey(trace.order, recorder_)) {
    client_->send_trace(trace.recording, *std::move(recorded));
  }
}

void RankIo::on_failed(const absl::Status& status) {
  loop_.post([this, status] { fail(status); });
}

void RankIo::on_lost(uint32_t member, bool ends_job, const absl::Status& why) {
  client_->fault(member, pipeline_->plan()->epoch, why);
  if (!ends_job) return;
  // Both ends are named, as in the coordinator's message to the other ranks.
  const std::string both = absl::StrCat("worker ", state_.rank_info().worker, " reports: ", why.message());
  fail(state_.is_elastic() ? workers_changed(both) : absl::Status(why.code(), both));
}

void RankIo::fail(absl::Status status) {
  // gln_wait() returns DeadlineExceeded if the request is not done yet, so an error that ends the session must have
  // another code.
  if (absl::IsDeadlineExceeded(status)) status = absl::UnavailableError(status.message());
  if (!state_.fail(status)) return;
  env_.log->info("session failed", "reason", status.message());
  // Other workers do not see the errors of local ranks that differ, and would wait as long as the program catches the
  // error and stays. Elastic jobs have one rank per worker.
  const bool has_local_ranks = state_.rank_info().local_ranks > 1;
  if (absl::IsInvalidArgument(status) && has_local_ranks) client_->fault(control::Fault::kItself, 0, status);
  pipeline_->fail(status);
  flow_.end_all(status);
  std::vector<Outcome> outcomes;
  flow_.take_outcomes(outcomes);
  deliver_outcomes(outcomes);
  handles_.close(status);
}

void RankIo::deliver_outcomes(std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) handles_.finish(outcome.handle, outcome.status);
  outcomes.clear();
}

void RankIo::observe() {
  const absl::Duration now = env_.clock->since_start();
  const Observation seen{.connected = pipeline_->connected() && pipeline_->plan() != nullptr,
                         .quiet = leaving_ && !statistics_.busy() && pipeline_->may_leave(),
                         .measured = network_ != nullptr && network_->overhead() > absl::ZeroDuration()};
  // The coordinator models the first tensors by the times of messages, so these are reported before the program can
  // declare a tensor, and as soon as they are complete.
  const bool is_urgent = (seen.connected && !observed_.connected) || (seen.measured && !observed_.measured);
  const bool due = is_urgent || statistics_.is_due(now);
  if (!due && seen == observed_) return;
  observed_ = seen;
  if (due) publish(now, seen.connected, is_urgent);
  if (seen.connected) state_.set_connected(network_ != nullptr ? network_->describe_transports() : "");
  state_.set_quiet(seen.quiet);
}

void RankIo::publish(absl::Duration now, bool connected, bool is_urgent) {
  const plan::Plan* const plan = pipeline_->plan().get();
  if (!connected && plan != nullptr && state_.is_opening()) state_.set_waiting_for(pipeline_->describe_waiting());
  const control::Report report = this->report(now, false);
  const encoding::Counts encoded = encoding_ != nullptr ? encoding_->counts() : encoding::Counts();
  const gln_stats stats = stats_of(report, encoded, plan);
  state_.set_stats(stats);
  is_urgent ? client_->report_now(report) : client_->report(report);
  statistics_.publish(report, encoded, stats.epoch, network_, now);
}

control::Report RankIo::report(absl::Duration now, bool last) {
  control::Report report = statistics_.report(now, last, network_);
  report.waiting = flow_.overdue(now);
  if (report.waiting.has_value() && network_ != nullptr) report.waiting->members = network_->waiting_for();
  return report;
}

}  // namespace gleaner::runtime
