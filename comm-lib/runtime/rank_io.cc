// A rank's work on its I/O thread: messages from the coordinator, requests in flight, and figures of both.
#include <utility>
#include <variant>

#include "comm-lib/runtime/rank.h"
#include "comm-lib/runtime/workers_changed.h"
#include "common/member/trace_order.h"

namespace gleaner::runtime {

void Rank::on_event(const member::Event& event) {
  loop_.post([this, event] { std::visit([this](const auto& each) { handle(each); }, event); });
}

void Rank::on_failed(const absl::Status& status) {
  loop_.post([this, status] { fail(status); });
}

void Rank::handle(const control::Regroup& regroup) { fail(workers_changed(regroup.why.message())); }

void Rank::handle(const member::CoordinatorLost&) {
  recorder_.forget();  // no observer can fetch the recording any more
  stages_->on_coordinator_lost();
}

void Rank::handle(const control::Inquire& inquire) {
  client_->begun(inquire.tensor, requests_.started(inquire.tensor));
}

void Rank::handle(const control::Trace& trace) {
  if (auto recorded = member::obey(trace.order, recorder_)) {
    client_->send_trace(trace.recording, *std::move(recorded));
  }
}

// after_round() reports outcomes to user threads after the turn is released, so that these can begin their next request
// in begin_here().
IoLoop::Load Rank::run_round() {
  stages_->poll();
  loop_.drain();
  stages_->advance();
  observe();
  requests_.take_outcomes(delivering_);
  if (stages_->has_work()) return IoLoop::Load::kWork;
  const bool in_flight = statistics_.busy() || !stages_->connected() || !stages_->idle();
  return in_flight ? IoLoop::Load::kInFlight : IoLoop::Load::kIdle;
}

void Rank::handle(const control::Welcome& welcome) {
  if (const absl::Status status = stages_->on_welcome(welcome); !status.ok()) return fail(status);
  state_.set_welcome(welcome);
}

void Rank::handle(const control::Prepare& prepare) {
  const uint32_t epoch = prepare.plan->epoch;
  if (const absl::Status status = stages_->prepare(prepare.plan); !status.ok()) return client_->refuse(epoch, status);
  prepared_ = prepare.plan;
  client_->acknowledge(epoch);
}

void Rank::handle(const control::Commit& commit) {
  if (const absl::Status status = stages_->commit(commit.epoch); !status.ok()) return fail(status);
  plan_ = std::move(prepared_);
  statistics_.follow(commit.epoch, env_.clock->since_start());
  state_.set_summers(plan_->summers());
  for (const Request& request : requests_.on_plan(*plan_)) start(request);
}

void Rank::begin(DeclaredRequest state) {
  statistics_.begin(state.tensor.bytes(), env_.clock->since_start());
  if (const absl::Status status = state_.usable(); !status.ok()) {
    requests_.refuse(state.request.handle, status);
    return note_end(state, false);
  }
  if (const auto request = requests_.add(std::move(state)); request.has_value()) start(*request);
}

void Rank::start(const Request& request) {
  record(trace::Kind::kRequested, request, request.requested_at);
  stages_->start(request);
}

void Rank::on_done(uint64_t handle, const absl::Status& status) {
  if (const auto ended = requests_.end(handle, status); ended.has_value()) note_end(*ended, status.ok());
}

void Rank::note_end(const DeclaredRequest& ended, bool ok) {
  if (recorder_.is_on() && ok) record(trace::Kind::kDone, ended.request, env_.clock->since_start());
  statistics_.end(ended.declaration, ended.tensor.bytes(), ok, env_.clock->since_start());
  declarations_.end(ended.declaration);
}

void Rank::record(trace::Kind kind, const Request& request, absl::Duration when) {
  if (!recorder_.is_on()) return;
  recorder_.record({absl::ToInt64Nanoseconds(when), request.step, request.tensor, 0, 0, 0, kind});
}

void Rank::deliver_outcomes(std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) handles_.finish(outcome.handle, outcome.status);
  outcomes.clear();
}

void Rank::on_lost(uint32_t member, bool ends_job, const absl::Status& why) {
  client_->fault(member, plan_->epoch, why);
  if (ends_job) fail(state_.is_elastic() ? workers_changed(why.message()) : why);
}

void Rank::fail(absl::Status status) {
  // gln_wait() returns DeadlineExceeded if the request is not done yet, so an error that ends the session must have
  // another code.
  if (absl::IsDeadlineExceeded(status)) status = absl::UnavailableError(status.message());
  if (!state_.fail(status)) return;
  env_.log->info("session failed", "reason", status.message());
  stages_->fail(status);
  for (const DeclaredRequest& ended : requests_.end_all(status)) note_end(ended, false);
  std::vector<Outcome> outcomes;
  requests_.take_outcomes(outcomes);
  deliver_outcomes(outcomes);
  handles_.close(status);
}

void Rank::observe() {
  const absl::Duration now = env_.clock->since_start();
  const Observation seen{.connected = stages_->connected() && plan_ != nullptr,
                         .quiet = closing_ && !statistics_.busy() && stages_->may_leave()};
  const bool due = statistics_.is_due(now);
  if (!due && seen == observed_) return;
  observed_ = seen;
  if (due) publish(now, seen.connected);
  if (seen.connected) state_.set_connected(stages_->describe_transports());
  state_.set_quiet(seen.quiet);
}

void Rank::publish(absl::Duration now, bool connected) {
  if (!connected && plan_ != nullptr && state_.is_opening()) state_.set_waiting_for(stages_->describe_waiting());
  const control::Report report = this->report(now, false);
  const gln_stats stats = stats_of(report, plan_.get());
  state_.set_stats(stats);
  client_->report(report);
  statistics_.publish(report, stats.epoch, stages_->network(), now);
}

control::Report Rank::report(absl::Duration now, bool last) {
  control::Report report = statistics_.report(now, last, stages_->network());
  report.waiting = requests_.overdue(now);
  return report;
}

}  // namespace gleaner::runtime
