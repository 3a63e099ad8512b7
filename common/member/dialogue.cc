#include "common/member/dialogue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/thread.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"

namespace gleaner::member {
namespace {

constexpr absl::Duration kHeartbeatEvery = absl::Seconds(1);
constexpr absl::Duration kRetryEvery = absl::Milliseconds(100);
// The coordinator, which knows who is missing, gives up first.
constexpr absl::Duration kGrace = absl::Seconds(3);

v1::Identity identity_of(const JoinOptions& options) {
  v1::Identity identity;
  identity.set_job(options.job);
  identity.set_role(options.role == Role::kWorker ? v1::ROLE_WORKER : v1::ROLE_SUMMER);
  if (options.index.has_value()) identity.set_index(*options.index);
  identity.set_local_rank(options.local_rank);
  identity.set_local_size(options.local_size);
  identity.set_address(options.address);
  identity.set_bits_per_second(options.bits_per_second);
  return identity;
}

}  // namespace

Dialogue::Dialogue(const Env& env, const JoinOptions& options, Listener* listener)
    : env_(env), options_(options), listener_(listener), stream_(options.coordinator), mailbox_([this] {
        stream_.wake();
      }) {}

Dialogue::~Dialogue() { stop(); }

absl::Status Dialogue::begin() {
  nonce_.resize(proto::kNonceBytes);
  absl::Status status = env_.random->fill({reinterpret_cast<uint8_t*>(nonce_.data()), nonce_.size()});
  if (status.ok()) thread_ = std::thread([this] { run(); });
  return status;
}

void Dialogue::declare(const std::vector<plan::Tensor>& tensors) {
  mailbox_.post([this, tensors] {
    v1::MemberMessage message;
    for (const plan::Tensor& tensor : tensors) proto::encode(tensor, message.mutable_declare()->add_tensors());
    send(std::move(message));
    note_declared(tensors);
  });
}

void Dialogue::acknowledge(uint32_t epoch) {
  mailbox_.post([this, epoch] {
    v1::MemberMessage message;
    message.mutable_acknowledge()->set_epoch(epoch);
    send(std::move(message));
  });
}

void Dialogue::refuse(uint32_t epoch, const absl::Status& why) {
  mailbox_.post([this, epoch, why] {
    v1::MemberMessage message;
    message.mutable_refuse()->set_epoch(epoch);
    proto::encode(why, message.mutable_refuse()->mutable_why());
    send(std::move(message));
  });
}

void Dialogue::report(const Report& report) {
  mailbox_.post([this, report] {
    report_ = report;
    report_due_ = true;
  });
}

void Dialogue::fault(uint32_t member, const absl::Status& why) {
  mailbox_.post([this, member, why] {
    v1::MemberMessage message;
    message.mutable_fault()->set_member(member);
    proto::encode(why, message.mutable_fault()->mutable_why());
    send(std::move(message));
  });
}

void Dialogue::leave(const absl::Status& status, absl::Duration timeout) {
  mailbox_.post([this, status] {
    if (phase_ != Phase::kJoined && phase_ != Phase::kStarted) return over();
    leaving_ = true;
    if (report_due_) send_report();
    v1::MemberMessage message;
    proto::encode(status, message.mutable_leave()->mutable_status());
    send(std::move(message));
  });
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&left_), timeout);
}

void Dialogue::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    stream_.wake();
    thread_.join();
  }
  mailbox_.close();
}

void Dialogue::run() {
  name_this_thread("gln-coord");
  started_ = last_heard_ = last_sent_ = env_.clock->since_start();
  stream_.open();
  while (!stopping_) {
    const Stream::Event event = stream_.wait(patience());
    mailbox_.drain();
    if (event == Stream::Event::kMessage) on_message(stream_.message());
    if (event == Stream::Event::kClosed) on_closed(stream_.status());
    tick();
  }
}

absl::Duration Dialogue::patience() const {
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kJoining:
      return kRetryEvery;
    case Phase::kJoined:
    case Phase::kStarted:
      return kHeartbeatEvery / 2;
    case Phase::kAlone:
    case Phase::kOver:
      break;
  }
  return absl::InfiniteDuration();
}

void Dialogue::send(v1::MemberMessage message) {
  if (phase_ == Phase::kConnecting || phase_ == Phase::kJoining) return held_back_.push_back(std::move(message));
  last_sent_ = env_.clock->since_start();
  stream_.write(std::move(message));
}

void Dialogue::send_report() {
  report_due_ = false;
  v1::MemberMessage message;
  message.mutable_report()->set_steps(report_.steps);
  message.mutable_report()->set_bytes(report_.bytes);
  message.mutable_report()->set_communication_seconds(report_.communication_seconds);
  send(std::move(message));
}

void Dialogue::on_message(const v1::CoordinatorMessage& message) {
  if (phase_ == Phase::kAlone || phase_ == Phase::kOver) return;
  last_heard_ = env_.clock->since_start();
  using Kind = v1::CoordinatorMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kChallenge:
      return on_challenge(message.challenge());
    case Kind::kWelcome:
      return on_welcome(message.welcome());
    case Kind::kPrepare:
      return on_prepare(message.prepare().plan());
    case Kind::kCommit:
      return on_commit(message.commit().epoch());
    case Kind::kFailed:
      return fail(proto::decode(message.failed().status()));
    case Kind::kFinished:
      over();
      if (!leaving_) listener_->on_finished();
      return;
    case Kind::kGoodbye:
      return over();
    case Kind::kRecall:
    case Kind::kHeartbeat:
    case Kind::KIND_NOT_SET:  // of a later version, and meant to be harmless to this one
      return;
  }
}

void Dialogue::on_challenge(const v1::Challenge& challenge) {
  if (phase_ != Phase::kConnecting) return;
  if (challenge.protocol() != proto::kProtocol) {
    return fail(absl::FailedPreconditionError(
        absl::StrCat("the coordinator at ", options_.coordinator.to_string(), " speaks protocol ", challenge.protocol(),
                     ", this member protocol ", proto::kProtocol, "; install the same version of gleaner on both")));
  }
  phase_ = Phase::kJoining;
  challenge_ = challenge.nonce();
  v1::MemberMessage message;
  v1::Join* join = message.mutable_join();
  join->set_protocol(proto::kProtocol);
  identity_of(options_).SerializeToString(join->mutable_identity());
  join->set_nonce(nonce_);
  join->set_proof(proto::make_proof(options_.token, proto::Prover::kMember, challenge_, nonce_, join->identity()));
  stream_.write(std::move(message));
}

void Dialogue::on_welcome(const v1::Welcome& welcome) {
  if (phase_ != Phase::kJoining) return;
  if (!proto::check_proof(welcome.proof(), options_.token, proto::Prover::kCoordinator, challenge_, nonce_,
                          welcome.job_nonce())) {
    return fail(absl::PermissionDeniedError(absl::StrCat("whoever answers at ", options_.coordinator.to_string(),
                                                         " does not hold this job's token; check the address")));
  }
  phase_ = Phase::kJoined;
  deadline_ = absl::Seconds(welcome.deadline_seconds());
  Welcome told;
  told.member = welcome.member();
  told.workers = welcome.workers();
  told.local_ranks = welcome.local_ranks();
  told.summers = welcome.summers();
  told.secret = wire::derive_secret(
      options_.token, options_.job,
      ConstBytes(reinterpret_cast<const std::byte*>(welcome.job_nonce().data()), welcome.job_nonce().size()));
  told.deadline = deadline_;
  for (v1::MemberMessage& message : std::exchange(held_back_, {})) send(std::move(message));
  if (!leaving_) listener_->on_welcome(told);
}

void Dialogue::on_prepare(const v1::Plan& message) {
  auto plan = proto::decode(message);
  if (!plan.ok()) return refuse(message.epoch(), plan.status());
  prepared_ = std::make_shared<const plan::Plan>(*std::move(plan));
  if (!leaving_) listener_->on_prepare(prepared_);
}

void Dialogue::on_commit(uint32_t epoch) {
  if (prepared_ == nullptr || prepared_->epoch != epoch) {
    return fail(absl::InternalError(
        absl::StrCat("the coordinator commits a plan of epoch ", epoch, " that it did not prepare")));
  }
  phase_ = Phase::kStarted;
  for (const plan::Tensor& tensor : prepared_->tensors) {
    const auto found = declared_.find(tensor.name);
    if (found != declared_.end() && !std::exchange(found->second, true)) --unplanned_;
  }
  prepared_.reset();
  if (!leaving_) listener_->on_commit(epoch);
}

void Dialogue::note_declared(const std::vector<plan::Tensor>& tensors) {
  for (const plan::Tensor& tensor : tensors) {
    if (declared_.try_emplace(tensor.name, false).second) ++unplanned_;
  }
  check_alone();
}

void Dialogue::check_alone() {
  if (phase_ != Phase::kAlone || unplanned_ == 0) return;
  for (const auto& [name, planned] : declared_) {
    if (planned) continue;
    return fail(absl::UnavailableError(absl::StrCat("the coordinator at ", options_.coordinator.to_string(),
                                                    " is lost, and nobody else can plan tensor '", name, "'")));
  }
}

void Dialogue::on_closed(const absl::Status& status) {
  const std::string where = options_.coordinator.to_string();
  switch (phase_) {
    case Phase::kConnecting:
      if (absl::IsUnimplemented(status)) {
        return fail(absl::FailedPreconditionError(
            absl::StrCat("what answers at ", where, " is no coordinator of gleaner (", status.message(), ")")));
      }
      last_failure_ = status;
      retry_at_ = env_.clock->since_start() + kRetryEvery;
      return;
    case Phase::kJoining:
      if (status.ok() || absl::IsUnavailable(status)) {
        return fail(absl::UnavailableError(
            absl::StrCat("the coordinator at ", where, " went away while this member joined: ", status.message())));
      }
      return fail(status);
    case Phase::kJoined:
    case Phase::kStarted:
      return on_lost(absl::UnavailableError(status.ok() ? "it ended the stream" : status.message()));
    case Phase::kAlone:
    case Phase::kOver:
      return;
  }
}

void Dialogue::on_lost(const absl::Status& why) {
  if (leaving_) return over();
  const std::string where = options_.coordinator.to_string();
  if (phase_ != Phase::kStarted) {
    return fail(absl::UnavailableError(
        absl::StrCat("the coordinator at ", where, " was lost before the job had begun: ", why.message())));
  }
  phase_ = Phase::kAlone;
  stream_.cancel();
  env_.log->warning("the coordinator is lost; the job goes on without it", "address", where, "reason", why.message());
  listener_->on_coordinator_lost();
  check_alone();
}

void Dialogue::tick() {
  const absl::Duration now = env_.clock->since_start();
  const std::string where = options_.coordinator.to_string();
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kJoining:
      if (now - started_ > options_.timeout) {
        return fail(absl::UnavailableError(
            absl::StrCat("can't reach the coordinator at ", where, " within ", absl::FormatDuration(options_.timeout),
                         ": ", last_failure_.ok() ? "nobody answers" : last_failure_.message(),
                         "; is it running there, and is the address right (GLEANER_COORDINATOR, --coordinator)?")));
      }
      if (!stream_.is_open() && now >= retry_at_) stream_.open();
      return;
    case Phase::kJoined:
      if (now - started_ > options_.timeout + kGrace) {
        return fail(absl::DeadlineExceededError(absl::StrCat("the job did not begin within ",
                                                             absl::FormatDuration(options_.timeout + kGrace),
                                                             "; the coordinator at ", where, " knows who is missing")));
      }
      break;
    case Phase::kStarted:
      break;
    case Phase::kAlone:
    case Phase::kOver:
      return;
  }
  if (now - last_heard_ > deadline_) {
    return on_lost(absl::UnavailableError(absl::StrCat("it has said nothing for ", absl::FormatDuration(deadline_))));
  }
  if (now - last_sent_ < kHeartbeatEvery || !stream_.written()) return;
  if (report_due_) return send_report();
  v1::MemberMessage message;
  message.mutable_heartbeat();
  send(std::move(message));
}

void Dialogue::fail(const absl::Status& status) {
  const bool silent = leaving_ || phase_ == Phase::kOver;
  over();
  if (!silent) listener_->on_failed(status);
}

void Dialogue::over() {
  phase_ = Phase::kOver;
  stream_.cancel();
  held_back_.clear();
  absl::MutexLock lock(&mutex_);
  left_ = true;
}

}  // namespace gleaner::member
