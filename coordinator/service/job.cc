#include "coordinator/service/job.h"

#include <utility>

#include "common/base/overloaded.h"
#include "common/control/codec.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kTickEvery = absl::Milliseconds(100);
constexpr absl::Duration kIdleTickEvery = absl::Milliseconds(500);  // while no member is connected
constexpr absl::Duration kSlowTickEvery = absl::Seconds(1);  // for metrics, and for changes of state() by reports
constexpr absl::Duration kLinger = absl::Seconds(2);         // for members to hear the outcome and close their streams

}  // namespace

Job::Job(const Env& env, Service::JobOptions options, std::string nonce, std::string session, uint64_t term,
         std::shared_ptr<Metrics> metrics, Model model)
    : env_(env),
      options_(std::move(options)),
      nonce_(std::move(nonce)),
      metrics_(std::move(metrics)),
      model_(std::move(model)),
      rounds_(options_.options, now(), {std::move(session), options_.may_resume, 0, term}) {
  update_metrics();
}

void Job::admit(std::shared_ptr<Stream> stream, Nonces nonces, const Identity& identity,
                const std::optional<Resume>& resume) {
  const StreamId id = stream->id();
  peers_[id] = {std::move(stream), std::move(nonces)};
  if (identity.role == Role::kObserver) return identity.reads_summary ? send_summary(id) : admit_observer(id);
  rounds_.on_joined(id, identity, resume, now(), actions_);
  carry_out();
}

void Job::on_message(StreamId stream, const v1::MemberMessage& message) {
  if (!peers_.contains(stream)) return;  // the stream was rejected or dropped
  if (tracing_.observer() == stream) return on_observe(message.observe());
  stale_ |= !message.has_heartbeat();
  dispatch(stream, message);
  carry_out();
}

void Job::dispatch(StreamId stream, const v1::MemberMessage& message) {
  if (message.has_traced()) {
    rounds_.core().on_heartbeat(stream, now());
    return tracing_.on_traced(stream, message.traced(), trace_sends_);
  }
  const absl::StatusOr<control::MemberMessage> decoded = control::decode(message);
  if (!decoded.ok()) return rounds_.on_disconnected(stream, decoded.status(), actions_);
  std::visit([&](const auto& each) { handle(stream, each); }, *decoded);
}

void Job::handle(StreamId stream, const Heartbeat&) { rounds_.core().on_heartbeat(stream, now()); }

void Job::handle(StreamId stream, const control::Declare& declare) {
  rounds_.core().on_declared(stream, declare.tensors, declare.operations, now(), actions_);
}

void Job::handle(StreamId stream, const control::Acknowledgement& answer) {
  rounds_.core().on_acknowledged(stream, answer.epoch, now(), actions_);
}

void Job::handle(StreamId stream, const control::Refusal& answer) {
  rounds_.core().on_refused(stream, answer.epoch, answer.why, now(), actions_);
}

void Job::handle(StreamId stream, const Report& report) {
  reported_ = true;
  tracing_.on_report(report.steps, trace_sends_);
  std::optional<OldestPushPull> waiting;
  if (report.waiting.has_value()) {
    waiting = OldestPushPull{report.waiting->tensor, report.waiting->step, now() - report.waiting->elapsed,
                             report.waiting->members};
  }
  rounds_.core().on_waiting(stream, std::move(waiting), now());
  rounds_.core().on_report(stream, report, now(), actions_);
}

void Job::handle(StreamId stream, const control::Begun& begun) {
  rounds_.core().on_begun(stream, begun.tensor, begun.push_pulls, now());
}

void Job::handle(StreamId stream, const control::PushPulls& answer) {
  rounds_.core().on_push_pulls(stream, answer.epoch, answer.counts, now(), actions_);
}

void Job::handle(StreamId stream, const control::Fault& fault) {
  rounds_.core().on_fault(stream, fault.member, fault.epoch, fault.why, now(), actions_);
}

void Job::handle(StreamId stream, const control::Recalled& recalled) {
  rounds_.core().on_recalled(stream, *recalled.plan, now(), actions_);
}

void Job::on_closed(StreamId stream, const absl::Status& why) {
  const auto peer = peers_.find(stream);
  if (peer == peers_.end()) return;
  const Leaving leaves = peer->second.leaves;
  peers_.erase(peer);
  changed_ = true;
  if (tracing_.on_closed(stream, trace_sends_)) rounds_.on_left(stream, absl::OkStatus(), leaves, now(), actions_);
  forward_held_leaves();
  rounds_.on_disconnected(stream, why, actions_);
  carry_out();
  settled_ = ended_at_.has_value() && peers_.empty();
}

void Job::tick() {
  const absl::Duration time = now();
  if (ended_at_.has_value() && !settled_ && (peers_.empty() || time - *ended_at_ >= kLinger)) {
    drop(absl::UnavailableError("the job has ended"));
    settled_ = true;
  }
  if (time < next_tick_) return;
  next_tick_ = time + (peers_.empty() ? kIdleTickEvery : kTickEvery);
  rounds_.on_tick(time, actions_);
  forward_held_leaves();
  carry_out();
  if (time < next_slow_tick_) return;
  next_slow_tick_ = time + kSlowTickEvery;
  if (std::exchange(reported_, false)) changed_ = true;
  if (std::exchange(stale_, false)) update_metrics();
}

void Job::on_refused() {
  ++refused_;
  stale_ = true;
}

std::shared_ptr<Metrics> Job::remove(const absl::Status& why) {
  stop(why);
  return std::exchange(metrics_, nullptr);
}

void Job::stop(const absl::Status& why) {
  rounds_.stop(why, actions_);
  carry_out();
}

absl::Status Job::set_summers(uint32_t summers) {
  absl::Status status = rounds_.core().set_summers(summers, now(), actions_);
  changed_ = true;
  carry_out();
  return status;
}

absl::Status Job::release_summer(uint32_t index) {
  absl::Status status = rounds_.core().release_summer(index, now(), actions_);
  changed_ = true;
  carry_out();
  return status;
}

absl::Status Job::set_bandwidth(Role role, uint32_t index, double bits_per_second) {
  absl::Status status = rounds_.core().set_bandwidth(role, index, bits_per_second, now(), actions_);
  carry_out();
  return status;
}

absl::Status Job::set_summer_switch(uint32_t index, uint32_t at) {
  absl::Status status = rounds_.core().set_summer_switch(index, at, now(), actions_);
  carry_out();
  return status;
}

void Job::on_ended(Role role, uint32_t index, const absl::Status& how) {
  changed_ = true;
  rounds_.on_ended(role, index, how, now(), actions_);
  carry_out();
}

void Job::on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit) {
  changed_ = true;
  rounds_.on_exited(worker, local_rank, exit, actions_);
  carry_out();
}

void Job::on_modelled(const ModelRequest& request, absl::StatusOr<strategy::Models> models) {
  changed_ = stale_ = true;
  rounds_.core().on_modelled(request, std::move(models), now(), actions_);
  carry_out();
}

void Job::carry_out() {
  rounds_.go_on(now(), actions_);
  for (const std::string& note : actions_.notes) env_.log->info(note, "job", name());
  for (const std::string& warning : actions_.warnings) env_.log->warning(warning, "job", name());
  if (!actions_.notes.empty() || !actions_.warnings.empty()) changed_ = stale_ = true;
  for (const Send& each : actions_.sends) send(each.stream, each.message);
  if (actions_.model != nullptr) model_(weak_from_this(), std::move(actions_.model));
  actions_ = {};
  tracing_.begin_if_asked(trace_sends_);  // right after the first commit, so that the trace has the first step
  for (const auto& [stream, message] : std::exchange(trace_sends_, {})) {
    if (const auto peer = peers_.find(stream); peer != peers_.end()) peer->second.stream->send(Stream::encode(message));
  }
  if (rounds_.outcome().has_value() && !ended_at_.has_value()) {
    ended_at_ = now();
    changed_ = true;
    const auto observer = peers_.find(tracing_.observer().value_or(0));
    if (observer != peers_.end()) observer->second.stream->end(absl::UnavailableError("the job has ended"));
    update_metrics();
  }
}

void Job::update_metrics() {
  if (metrics_ != nullptr) metrics_->update(rounds_.core(), refused_, rounds_.past());
}

void Job::send(StreamId stream, const Message& message) {
  const auto found = peers_.find(stream);
  if (found == peers_.end()) return;
  Stream& member = *found->second.stream;
  if (const auto* rejected = std::get_if<Rejected>(&message)) {
    member.end(rejected->why);
    tracing_.on_closed(stream, trace_sends_);  // a held back Leave of this member has no effect now
    peers_.erase(found);
    return;
  }
  member.send(encode_for(found->second, message));
  const bool last = std::holds_alternative<Failed>(message) || std::holds_alternative<Finished>(message) ||
                    std::holds_alternative<Goodbye>(message);
  // The peer is kept until the member closes its end too, which shows that it has received the message.
  if (last) member.end(absl::OkStatus());
}

Stream::Outgoing Job::encode_for(const Peer& peer, const Message& message) {
  const auto* prepare = std::get_if<Prepare>(&message);
  if (prepare == nullptr) return Stream::encode(encode(peer, message));
  if (encoded_plan_ != prepare->plan) {
    changed_ = true;
    encoded_plan_ = prepare->plan;
    encoded_prepare_ = Stream::encode(encode(peer, message));
  }
  return encoded_prepare_;
}

// Encodes any message except Rejected, which becomes the status that ends the stream.
v1::CoordinatorMessage Job::encode(const Peer& peer, const Message& message) const {
  return std::visit(
      Overloaded{[&](const Welcome& welcome) {
                   return control::encode(welcome_message(options_, nonce_, rounds_, peer.nonces, welcome));
                 },
                 [](const Rejected&) { return v1::CoordinatorMessage(); },
                 [](const auto& each) { return control::encode(control::CoordinatorMessage(each)); }},
      message);
}

void Job::admit_observer(StreamId stream) {
  const Peer& peer = peers_[stream];
  if (const absl::Status status = tracing_.enter(stream); !status.ok()) {
    peer.stream->end(status);
    peers_.erase(stream);
    return;
  }
  welcome_observer(peer);
}

// Tracing does not know of this observer.
void Job::send_summary(StreamId stream) {
  const Peer& peer = peers_[stream];
  welcome_observer(peer);
  v1::CoordinatorMessage message;
  message.mutable_observed()->set_summary(to_json(rounds_.summary()));
  peer.stream->send(Stream::encode(message));
  peer.stream->end(absl::OkStatus());
  peers_.erase(stream);
}

void Job::welcome_observer(const Peer& peer) {
  control::Admission answer =
      welcome_message(options_, nonce_, rounds_, peer.nonces, {0, rounds_.core().roster().summers(), ""});
  answer.secret.clear();  // an observer has no data connections
  peer.stream->send(Stream::encode(control::encode(answer)));
}

void Job::on_observe(const v1::Observe& observe) {
  const StreamId observer = *tracing_.observer();
  if (const absl::Status status = tracing_.ask(observe, trace_sends_); !status.ok()) {
    peers_[observer].stream->end(status);
    on_closed(observer, status);  // at once: the user may start the next observer as soon as this one has ended
    return;
  }
  carry_out();
}

void Job::handle(StreamId stream, const control::Leave& leave) {
  peers_.at(stream).leaves = {leave.epoch, leave.again};
  if (leave.status.ok() && tracing_.hold_back(stream, now(), trace_sends_)) return;
  changed_ = true;
  rounds_.on_left(stream, leave.status, {leave.epoch, leave.again}, now(), actions_);
}

void Job::forward_held_leaves() {
  for (const StreamId stream : tracing_.release(now(), trace_sends_)) {
    changed_ = true;
    rounds_.on_left(stream, absl::OkStatus(), peers_.at(stream).leaves, now(), actions_);
  }
}

void Job::drop(const absl::Status& why) {
  for (auto& [id, peer] : peers_) peer.stream->end(why);
  peers_.clear();
}

bool Job::take_changed() { return std::exchange(changed_, false); }

}  // namespace gleaner::coordinator
