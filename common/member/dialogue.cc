#include "common/member/dialogue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/thread.h"
#include "common/member/credentials.h"
#include "common/member/trace_messages.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"

namespace gleaner::member {
namespace {

constexpr absl::Duration kHeartbeatEvery = absl::Seconds(1);
constexpr absl::Duration kSummersHeartbeatEvery = absl::Milliseconds(250);  // it can be replaced, if one knows soon
constexpr absl::Duration kLookEvery = absl::Milliseconds(100);              // while there is no connection
// The coordinator, which knows who is missing, gives up first.
constexpr absl::Duration kGrace = absl::Seconds(3);

}  // namespace

Dialogue::Dialogue(const Env& env, const JoinOptions& options, Listener* listener)
    : env_(env),
      options_(options),
      heartbeat_every_(options.role == Role::kSummer ? kSummersHeartbeatEvery : kHeartbeatEvery),
      listener_(listener),
      introduction_(options_, env_.random),
      stream_(options.coordinator),
      mailbox_([this] { stream_.wake(); }) {}

Dialogue::~Dialogue() { stop(); }

absl::Status Dialogue::begin() {
  absl::Status status = channel_credentials(options_).status();  // what is wrong from the start is said at once
  if (status.ok()) thread_ = std::thread([this] { run(); });
  return status;
}

void Dialogue::declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations) {
  mailbox_.post([this, tensors, operations] {
    // Who is not in sends all it has declared when it is.
    if (phase_ == Phase::kIn) send_declared(tensors, operations);
    note_declared(tensors, operations);
  });
}

void Dialogue::acknowledge(uint32_t epoch) {
  mailbox_.post([this, epoch] {
    // A coordinator that comes back asks once more.
    if (phase_ != Phase::kIn) return;
    v1::MemberMessage message;
    message.mutable_acknowledge()->set_epoch(epoch);
    send(std::move(message));
  });
}

void Dialogue::refuse(uint32_t epoch, const absl::Status& why) {
  mailbox_.post([this, epoch, why] {
    if (phase_ != Phase::kIn) return;
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

void Dialogue::begun(const std::string& tensor, uint64_t push_pulls) {
  mailbox_.post([this, tensor, push_pulls] {
    if (phase_ != Phase::kIn) return;  // another coordinator asks for itself
    v1::MemberMessage message;
    message.mutable_begun()->set_tensor(tensor);
    message.mutable_begun()->set_push_pulls(push_pulls);
    send(std::move(message));
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

void Dialogue::send_trace(uint64_t recording, trace::Recording what) {
  mailbox_.post([this, recording, what = std::move(what)] {
    if (phase_ != Phase::kIn) return;  // who asked is gone
    for (v1::Traced& piece : encode(recording, what)) {
      v1::MemberMessage message;
      message.mutable_traced()->Swap(&piece);
      send(std::move(message));
    }
  });
}

bool Dialogue::leave(const absl::Status& status, absl::Duration timeout) { return leave_now(status, false, timeout); }

bool Dialogue::come_again(const absl::Status& status, absl::Duration timeout) {
  return leave_now(status, true, timeout);
}

bool Dialogue::leave_now(const absl::Status& status, bool again, absl::Duration timeout) {
  {
    absl::MutexLock lock(&mutex_);
    stays_ = false;
  }
  mailbox_.post([this, status, again] {
    leaving_ = true;
    again_ = again;
    leave_status_ = status;
    if (phase_ == Phase::kIn || phase_ == Phase::kRegroup) return send_leave();
    if (phase_ == Phase::kAlone || phase_ == Phase::kOver || !has_begun()) return over();
    pause_ = absl::ZeroDuration();
    retry_at_ = env_.clock->since_start();
  });
  absl::MutexLock lock(&mutex_);
  const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return left_ || stays_; };
  mutex_.AwaitWithTimeout(absl::Condition(&over), timeout);
  return !stays_;
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
  connect();
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
      return kLookEvery;
    case Phase::kIn:
      return heartbeat_every_ / 2;
    case Phase::kRegroup:
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
  if (report_.waiting.has_value()) {
    v1::Waiting* waiting = message.mutable_report()->mutable_waiting();
    waiting->set_tensor(report_.waiting->tensor);
    waiting->set_step(report_.waiting->step);
    waiting->set_seconds(absl::ToDoubleSeconds(report_.waiting->elapsed));
  }
  send(std::move(message));
}

void Dialogue::send_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations) {
  if (tensors.empty() && operations.empty()) return;
  v1::MemberMessage message;
  for (const plan::Tensor& tensor : tensors) proto::encode(tensor, message.mutable_declare()->add_tensors());
  for (const plan::Operation& each : operations) proto::encode(each, message.mutable_declare()->add_operations());
  send(std::move(message));
}

void Dialogue::send_leave() {
  if (report_due_) send_report();
  v1::MemberMessage message;
  proto::encode(leave_status_, message.mutable_leave()->mutable_status());
  message.mutable_leave()->set_again(again_);
  if (committed_ != nullptr) message.mutable_leave()->set_epoch(committed_->epoch);
  send(std::move(message));
}

void Dialogue::send_recalled() {
  if (!has_begun()) return;
  v1::MemberMessage message;
  proto::encode(*committed_, message.mutable_recalled()->mutable_plan());
  send(std::move(message));
}

void Dialogue::on_message(const v1::CoordinatorMessage& message) {
  if (dropped_ || phase_ == Phase::kAlone || phase_ == Phase::kOver) return;
  last_heard_ = env_.clock->since_start();
  if (phase_ == Phase::kRegroup) {
    if (message.has_goodbye()) over();
    return;
  }
  using Kind = v1::CoordinatorMessage::KindCase;
  // Whoever has not shown that it is our coordinator has nothing to tell us.
  const bool introduces_itself = message.has_challenge() || message.has_welcome();
  if (phase_ != Phase::kIn && !introduces_itself) return;
  switch (message.kind_case()) {
    case Kind::kChallenge:
      return on_challenge(message.challenge());
    case Kind::kWelcome:
      return on_welcome(message.welcome());
    case Kind::kRecall:
      return send_recalled();
    case Kind::kPrepare:
      return on_prepare(message.prepare().plan());
    case Kind::kCommit:
      return on_commit(message.commit().epoch());
    case Kind::kInquire:
      return listener_->on_inquired(message.inquire().tensor());
    case Kind::kTrace:
      return on_trace(message.trace());
    case Kind::kFailed:
      if (message.failed().again() && options_.role == Role::kWorker) {
        return regroup(proto::decode(message.failed().status()));
      }
      return fail(proto::decode(message.failed().status()));
    case Kind::kNewcomers:
      return listener_->on_newcomers(message.newcomers().workers());
    case Kind::kFinished:
      over();
      if (!leaving_) listener_->on_finished();
      return;
    case Kind::kGoodbye:
      over();
      if (!leaving_ || options_.role == Role::kSummer) listener_->on_finished();
      return;
    case Kind::kEnding:
      listener_->on_ending();
      return;
    case Kind::kObserved:  // for observers
    case Kind::kHeartbeat:
    case Kind::KIND_NOT_SET:  // of a later version, and meant to be harmless to this one
      return;
  }
}

void Dialogue::on_prepare(const v1::Plan& message) {
  auto plan = proto::decode(message);
  if (!plan.ok()) return refuse(message.epoch(), plan.status());
  prepared_ = std::make_shared<const plan::Plan>(*std::move(plan));
  if (follows_plans()) listener_->on_prepare(prepared_);
}

void Dialogue::on_commit(uint32_t epoch) {
  if (prepared_ == nullptr || prepared_->epoch != epoch) {
    return fail(absl::InternalError(
        absl::StrCat("the coordinator commits a plan of epoch ", epoch, " that it did not prepare")));
  }
  committed_ = std::exchange(prepared_, nullptr);
  for (const plan::Tensor& tensor : committed_->tensors) {
    if (const auto found = declared_.find(tensor.name); found != declared_.end()) found->second = true;
  }
  unplanned_.erase(std::remove_if(unplanned_.begin(), unplanned_.end(),
                                  [this](const plan::Tensor& tensor) { return declared_.at(tensor.name); }),
                   unplanned_.end());
  std::erase_if(unplanned_operations_, [this](const plan::Operation& each) { return declared_.at(each.tensor); });
  if (follows_plans()) listener_->on_commit(epoch);
  if (options_.role == Role::kSummer || !leave_status_.ok() || !std::exchange(leaving_, false)) return;
  absl::MutexLock lock(&mutex_);
  stays_ = true;
}

void Dialogue::on_trace(const v1::Trace& message) {
  if (const auto order = decode(message.order()); order.has_value()) listener_->on_trace(*order, message.recording());
}

void Dialogue::note_declared(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations) {
  if (unplanned_.empty()) unplanned_since_ = env_.clock->since_start();
  for (const plan::Tensor& tensor : tensors) {
    if (declared_.try_emplace(tensor.name, false).second) unplanned_.push_back(tensor);
  }
  // Owners compare the operations of tensors that a plan has.
  for (const plan::Operation& each : operations) {
    const auto found = declared_.find(each.tensor);
    if (found != declared_.end() && !found->second) unplanned_operations_.push_back(each);
  }
  check_alone();
}

void Dialogue::check_alone() {
  if (phase_ != Phase::kAlone || unplanned_.empty()) return;
  fail(absl::UnavailableError(absl::StrCat("the coordinator at ", options_.coordinator.to_string(),
                                           " is lost, and nobody else can plan tensor '", unplanned_[0].name, "'",
                                           last_failure_.ok() ? "" : ": ", last_failure_.message())));
}

void Dialogue::tick() {
  const absl::Duration now = env_.clock->since_start();
  switch (phase_) {
    case Phase::kConnecting:
    case Phase::kJoining:
      return tick_connecting(now);
    case Phase::kIn:
      break;
    case Phase::kRegroup:
    case Phase::kAlone:
    case Phase::kOver:
      return;
  }
  if (!has_begun() && now - started_ > options_.timeout + kGrace) {
    return fail(absl::DeadlineExceededError(
        absl::StrCat("the job did not begin within ", absl::FormatDuration(options_.timeout + kGrace),
                     "; the coordinator at ", options_.coordinator.to_string(), " knows who is missing")));
  }
  if (now - last_heard_ > told_->deadline) {
    return on_lost(
        absl::UnavailableError(absl::StrCat("it has said nothing for ", absl::FormatDuration(told_->deadline))));
  }
  if (now - last_sent_ < heartbeat_every_ || !stream_.written()) return;
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

// Who leaves already waits for the coordinator to have heard it.
void Dialogue::regroup(const absl::Status& status) {
  phase_ = Phase::kRegroup;
  if (!leaving_) listener_->on_regroup(status);
}

void Dialogue::over() {
  phase_ = Phase::kOver;
  stream_.cancel();
  held_back_.clear();
  absl::MutexLock lock(&mutex_);
  left_ = true;
}

}  // namespace gleaner::member
