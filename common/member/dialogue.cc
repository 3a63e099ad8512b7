#include "common/member/dialogue.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/thread.h"
#include "common/member/credentials.h"
#include "common/member/messages.h"
#include "common/member/trace_messages.h"
#include "common/proto/plan_codec.h"

namespace gleaner::member {
namespace {

constexpr absl::Duration kSummersHeartbeat = absl::Milliseconds(250);  // it can be replaced, if one knows soon

Membership::Terms terms_of(const JoinOptions& options) {
  Membership::Terms terms;
  terms.is_summer = options.role == Role::kSummer;
  terms.coordinator = options.coordinator.to_string();
  terms.timeout = options.timeout;
  terms.plan_timeout = options.plan_timeout;
  if (terms.is_summer) terms.pace.heartbeat = kSummersHeartbeat;
  return terms;
}

std::function<double()> dice_of(Random* random) {
  return [random] {
    uint8_t die = 0;
    return random->fill({&die, 1}).ok() ? die / 255.0 : 0.0;
  };
}

}  // namespace

Dialogue::Dialogue(const Env& env, const JoinOptions& options, Listener* listener)
    : env_(env),
      options_(options),
      listener_(listener),
      introduction_(options_, env_.random),
      stream_(options.coordinator),
      membership_(terms_of(options_), dice_of(env_.random)),
      mailbox_([this] { stream_.wake(); }) {}

Dialogue::~Dialogue() { stop(); }

absl::Status Dialogue::begin() {
  absl::Status status = channel_credentials(options_).status();  // what is wrong from the start is said at once
  if (status.ok()) thread_ = std::thread([this] { run(); });
  return status;
}

void Dialogue::declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations) {
  mailbox_.post([this, tensors, operations] { membership_.declare(tensors, operations, now()); });
}

void Dialogue::acknowledge(uint32_t epoch) {
  mailbox_.post([this, epoch] { membership_.acknowledge(epoch, now()); });
}

void Dialogue::refuse(uint32_t epoch, const absl::Status& why) {
  mailbox_.post([this, epoch, why] { membership_.refuse(epoch, why, now()); });
}

void Dialogue::report(const Report& report) {
  mailbox_.post([this, report] { membership_.report(report); });
}

void Dialogue::begun(const std::string& tensor, uint64_t push_pulls) {
  mailbox_.post([this, tensor, push_pulls] { membership_.begun(tensor, push_pulls, now()); });
}

void Dialogue::fault(uint32_t member, const absl::Status& why) {
  mailbox_.post([this, member, why] { membership_.fault(member, why, now()); });
}

void Dialogue::saw(uint32_t epoch, bool by_rank) {
  mailbox_.post([this, epoch, by_rank] { membership_.saw(epoch, by_rank); });
}

void Dialogue::send_trace(uint64_t recording, trace::Recording what) {
  mailbox_.post([this, recording, what = std::move(what)] {
    if (!membership_.is_in()) return;  // who asked is gone
    for (v1::Traced& piece : encode(recording, what)) {
      v1::MemberMessage message;
      message.mutable_traced()->Swap(&piece);
      stream_.write(std::move(message));
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
  mailbox_.post([=, this] { membership_.leave(status, again, timeout, now()); });
  if (options_.role == Role::kSummer) return true;
  absl::MutexLock lock(&mutex_);
  const auto over = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return left_ || stays_; };
  mutex_.Await(absl::Condition(&over));
  return !stays_;
}

void Dialogue::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    stream_.wake();
    thread_.join();
  }
  mailbox_.close();
  act(Left{});  // nobody is there any more to wait for
}

// --- the thread

void Dialogue::run() {
  name_this_thread("gln-coord");
  membership_.begin(now());
  carry_out();
  while (!stopping_) {
    const Stream::Event event = stream_.wait(membership_.patience());
    mailbox_.drain();
    if (event == Stream::Event::kMessage) on_message(stream_.message());
    if (event == Stream::Event::kClosed) on_closed(stream_.status());
    membership_.on_tick(stream_.written(), now());
    carry_out();
  }
}

void Dialogue::on_message(const v1::CoordinatorMessage& message) {
  if (dropped_ || membership_.is_over()) return;
  membership_.on_heard(now());
  using Kind = v1::CoordinatorMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kChallenge:
      challenge_ = message.challenge();
      return membership_.on_challenged(now());
    case Kind::kWelcome:
      return on_welcome(message.welcome());
    case Kind::kGoodbye:
      return membership_.on_goodbye();
    default:
      // Whoever has not shown that it is our coordinator has nothing to tell us.
      if (membership_.is_in()) on_message_from_inside(message);
  }
}

void Dialogue::on_message_from_inside(const v1::CoordinatorMessage& message) {
  using Kind = v1::CoordinatorMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kRecall:
      return membership_.on_recalled(now());
    case Kind::kPrepare:
      return on_prepare(message.prepare().plan());
    case Kind::kCommit:
      return membership_.on_commit(message.commit().epoch());
    case Kind::kInquire:
      return listener_->on_inquired(message.inquire().tensor());
    case Kind::kTrace:
      return on_trace(message.trace());
    case Kind::kFailed:
      return membership_.on_failed(proto::decode(message.failed().status()), message.failed().again());
    case Kind::kNewcomers:
      return listener_->on_newcomers(message.newcomers().workers());
    case Kind::kFinished:
      return membership_.on_finished();
    case Kind::kEnding:
      return listener_->on_ending();
    case Kind::kChallenge:
    case Kind::kWelcome:
    case Kind::kGoodbye:
    case Kind::kObserved:  // for observers
    case Kind::kHeartbeat:
    case Kind::KIND_NOT_SET:  // of a later version, and meant to be harmless to this one
      return;
  }
}

void Dialogue::on_welcome(const v1::Welcome& welcome) {
  if (!membership_.expects_welcome()) return;
  Admission admission{{}, welcome.session(), welcome.term()};
  const absl::Status status = introduction_.check(welcome, &admission.told);
  if (!status.ok()) return membership_.on_attempt_failed(status, now());
  membership_.on_welcome(admission, now());
}

void Dialogue::on_prepare(const v1::Plan& message) {
  auto plan = proto::decode(message);
  if (!plan.ok()) return membership_.refuse(message.epoch(), plan.status(), now());
  membership_.on_prepare(std::make_shared<const plan::Plan>(*std::move(plan)), now());
}

void Dialogue::on_trace(const v1::Trace& message) {
  if (const auto order = decode(message.order()); order.has_value()) listener_->on_trace(*order, message.recording());
}

void Dialogue::on_closed(const absl::Status& status) {
  if (!std::exchange(dropped_, false)) return membership_.on_closed(status, now());
  if (std::exchange(connect_next_, false)) act(Connect{});
}

// --- what the membership wants done

void Dialogue::carry_out() {
  // What is done may have consequences at once.
  for (std::vector<Action> actions = membership_.take(); !actions.empty(); actions = membership_.take()) {
    for (const Action& action : actions) {
      std::visit([this](const auto& what) { act(what); }, action);
    }
  }
}

void Dialogue::act(const Saying& what) { stream_.write(encode(what)); }

void Dialogue::act(const Connect&) {
  if (stream_.is_open()) {
    connect_next_ = true;
    return;
  }
  const auto credentials = channel_credentials(options_);
  if (credentials.ok()) return stream_.open(*credentials);
  membership_.on_attempt_failed(credentials.status(), now());
}

void Dialogue::act(const Disconnect&) {
  connect_next_ = false;
  if (!stream_.is_open()) return;
  dropped_ = true;
  stream_.cancel();
}

void Dialogue::act(const Introduce& what) {
  v1::MemberMessage message;
  const absl::Status status = introduction_.answer(challenge_, message.mutable_join());
  if (!status.ok()) return membership_.on_attempt_failed(status, now());
  if (what.resume.has_value()) encode(*what.resume, message.mutable_join()->mutable_resume());
  stream_.write(std::move(message));
}

void Dialogue::act(const Left&) {
  absl::MutexLock lock(&mutex_);
  left_ = true;
}

void Dialogue::act(const Stays&) {
  absl::MutexLock lock(&mutex_);
  stays_ = true;
}

void Dialogue::act(const Note& what) {
  const std::string address = options_.coordinator.to_string();
  switch (what.level) {
    case Note::Level::kDebug:
      return env_.log->debug(what.text, "address", address, "reason", what.reason);
    case Note::Level::kInfo:
      return env_.log->info(what.text, "address", address);
    case Note::Level::kWarning:
      return env_.log->warning(what.text, "address", address, "reason", what.reason);
  }
}

}  // namespace gleaner::member
