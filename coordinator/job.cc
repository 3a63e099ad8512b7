#include "coordinator/job.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"
#include "common/wire/handshake.h"
#include "coordinator/job_messages.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kTickEvery = absl::Milliseconds(100);
constexpr absl::Duration kIdleTickEvery = absl::Milliseconds(500);  // while no member is connected
constexpr absl::Duration kSlowTickEvery = absl::Seconds(1);  // for metrics, and for changes of state() by reports
constexpr absl::Duration kLinger = absl::Seconds(2);         // for members to hear the outcome and close their streams

std::string round_secret(const Service::JobOptions& options, const std::string& nonce) {
  const wire::Secret secret =
      wire::derive_secret(options.data_secret, options.options.job,
                          ConstBytes(reinterpret_cast<const std::byte*>(nonce.data()), nonce.size()));
  return {secret.begin(), secret.end()};
}

}  // namespace

Job::Job(const Env& env, Service::JobOptions options, std::string nonce, std::string session, uint64_t term,
         std::shared_ptr<Metrics> metrics)
    : env_(env),
      options_(std::move(options)),
      nonce_(std::move(nonce)),
      metrics_(std::move(metrics)),
      rounds_(options_.options, now(), {std::move(session), options_.may_resume, 0, term}) {
  update_metrics();
}

void Job::admit(std::shared_ptr<Stream> stream, Nonces nonces, const Identity& identity,
                const std::optional<Resume>& resume) {
  const StreamId id = stream->id();
  peers_[id] = {std::move(stream), std::move(nonces)};
  if (identity.role == Role::kObserver) return admit_observer(id);
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
  using Kind = v1::MemberMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kDeclare: {
      const auto tensors = proto::decode(message.declare().tensors());
      const auto operations = proto::decode(message.declare().operations());
      if (tensors.ok() && operations.ok()) {
        return rounds_.core().on_declared(stream, *tensors, *operations, now(), actions_);
      }
      return rounds_.on_disconnected(stream, tensors.ok() ? operations.status() : tensors.status(), actions_);
    }
    case Kind::kAcknowledge:
      return rounds_.core().on_acknowledged(stream, message.acknowledge().epoch(), now(), actions_);
    case Kind::kRefuse:
      return rounds_.core().on_refused(stream, message.refuse().epoch(), proto::decode(message.refuse().why()), now(),
                                       actions_);
    case Kind::kReport: {
      const v1::Report& report = message.report();
      reported_ = true;
      tracing_.on_report(report.steps(), trace_sends_);
      if (const absl::Status status = check_waiting(report); !status.ok()) {
        return rounds_.on_disconnected(stream, status, actions_);
      }
      rounds_.core().on_waiting(stream, decode_waiting(report, now()), now());
      return rounds_.core().on_report(stream, decode(report), now(), actions_);
    }
    case Kind::kBegun:
      return rounds_.core().on_begun(stream, message.begun().tensor(), message.begun().push_pulls(), now());
    case Kind::kFault:
      return rounds_.core().on_fault(stream, message.fault().member(), message.fault().epoch(),
                                     proto::decode(message.fault().why()), now(), actions_);
    case Kind::kLeave:
      return on_leave(stream, message.leave());
    case Kind::kTraced:
      rounds_.core().on_heartbeat(stream, now());
      return tracing_.on_traced(stream, message.traced(), trace_sends_);
    case Kind::kObserve:
      return rounds_.on_disconnected(stream, absl::InvalidArgumentError("a message of an observer came from a member"),
                                     actions_);
    case Kind::kRecalled: {
      auto plan = proto::decode(message.recalled().plan());
      if (plan.ok()) return rounds_.core().on_recalled(stream, *std::move(plan), now(), actions_);
      return rounds_.on_disconnected(stream, plan.status(), actions_);
    }
    case Kind::kJoin:
      return rounds_.on_disconnected(stream, absl::InvalidArgumentError("a second Join came on one stream"), actions_);
    case Kind::kHeartbeat:
    case Kind::KIND_NOT_SET:  // a message of a later version, which may be ignored
      return rounds_.core().on_heartbeat(stream, now());
  }
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

void Job::carry_out() {
  rounds_.go_on(now(), actions_);
  for (const std::string& note : actions_.notes) env_.log->info(note, "job", name());
  for (const std::string& warning : actions_.warnings) env_.log->warning(warning, "job", name());
  if (!actions_.notes.empty() || !actions_.warnings.empty()) changed_ = stale_ = true;
  for (const Send& each : actions_.sends) send(each.stream, each.message);
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
  if (const auto* told = std::get_if<Welcome>(&message)) return Stream::encode(welcome(peer, *told));
  const auto* prepare = std::get_if<Prepare>(&message);
  if (prepare == nullptr) return Stream::encode(encode(message));
  if (encoded_plan_ != prepare->plan) {
    changed_ = true;
    encoded_plan_ = prepare->plan;
    encoded_prepare_ = Stream::encode(encode(message));
  }
  return encoded_prepare_;
}

v1::CoordinatorMessage Job::welcome(const Peer& peer, const Welcome& told) const {
  v1::CoordinatorMessage message;
  v1::Welcome* welcome = message.mutable_welcome();
  welcome->set_member(told.member);
  welcome->set_workers(rounds_.core().roster().ranks() / options_.options.local_ranks);
  welcome->set_local_ranks(options_.options.local_ranks);
  welcome->set_summers(told.summers);
  const bool elastic = options_.options.is_elastic();
  // Members derive the secret of the data connections from this nonce. The secret has to stay the same under the next
  // coordinator, so the session serves as nonce. Each round has a nonce of its own, so no member of one round has the
  // secret of another.
  const std::string nonce = elastic                ? absl::StrCat(nonce_, "/", rounds_.number())
                            : told.session.empty() ? nonce_
                                                   : told.session;
  welcome->set_elastic(elastic);
  welcome->set_job_nonce(nonce);
  welcome->set_deadline_seconds(absl::ToDoubleSeconds(options_.options.deadline));
  welcome->set_session(told.session);
  welcome->set_term(told.term);
  if (token().empty()) {
    welcome->set_secret(elastic ? round_secret(options_, nonce) : options_.data_secret);
  } else {
    welcome->set_proof(
        proto::make_proof(token(), proto::Prover::kCoordinator, peer.nonces.coordinator, peer.nonces.member, nonce));
  }
  return message;
}

void Job::admit_observer(StreamId stream) {
  const Peer& peer = peers_[stream];
  if (const absl::Status status = tracing_.enter(stream); !status.ok()) {
    peer.stream->end(status);
    peers_.erase(stream);
    return;
  }
  v1::CoordinatorMessage message = welcome(peer, {0, rounds_.core().roster().summers(), ""});
  message.mutable_welcome()->clear_secret();  // an observer has no data connections
  peer.stream->send(Stream::encode(message));
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

void Job::on_leave(StreamId stream, const v1::Leave& leave) {
  const absl::Status status = proto::decode(leave.status());
  peers_.at(stream).leaves = {leave.epoch(), leave.again()};
  if (status.ok() && tracing_.hold_back(stream, now(), trace_sends_)) return;
  changed_ = true;
  rounds_.on_left(stream, status, {leave.epoch(), leave.again()}, now(), actions_);
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
