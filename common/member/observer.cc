#include "common/member/observer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/control/codec.h"
#include "common/member/credentials.h"
#include "common/member/trace_messages.h"
#include "common/proto/grpc_start.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"

namespace gleaner::member {
namespace {

constexpr absl::Duration kAnswerWithin = absl::Seconds(10);

JoinOptions as_observer(JoinOptions options) {
  options.identity.role = control::Role::kObserver;
  return options;
}

}  // namespace

Observer::Observer(const Env& env, JoinOptions options)
    : env_(env),
      options_(as_observer(std::move(options))),
      introduction_(options_, env.random),
      stream_(options_.coordinator) {}

absl::StatusOr<std::unique_ptr<Observer>> Observer::join(const Env& env, JoinOptions options) {
  GLN_RETURN_IF_ERROR(proto::start_grpc(proto::channel_threads(), "the connection to the coordinator"));
  auto observer = std::unique_ptr<Observer>(new Observer(env, std::move(options)));
  GLN_ASSIGN_OR_RETURN(const auto credentials, channel_credentials(observer->options_));
  observer->stream_.open(credentials);
  GLN_RETURN_IF_ERROR(observer->introduce());
  return observer;
}

absl::StatusOr<std::string> Observer::read_summary(const Env& env, JoinOptions options) {
  options.identity.reads_summary = true;
  GLN_ASSIGN_OR_RETURN(const auto observer, join(env, std::move(options)));
  GLN_ASSIGN_OR_RETURN(const v1::CoordinatorMessage* const message,
                       observer->next(observer->now() + observer->options_.timeout, false));
  if (message == nullptr || !message->observed().has_summary()) {
    return observer->failed(absl::UnavailableError("it sends no summary; install the same version of gleaner on both"));
  }
  std::string summary = message->observed().summary();
  observer->close();
  return summary;
}

absl::Status Observer::introduce() {
  const absl::Duration deadline = now() + options_.timeout;
  while (true) {
    GLN_ASSIGN_OR_RETURN(const v1::CoordinatorMessage* const message, next(deadline, false));
    if (message == nullptr) {
      return failed(absl::UnavailableError(absl::StrCat("no answer within ", absl::FormatDuration(options_.timeout))));
    }
    if (message->has_challenge()) {
      introduction_.on_challenge(control::decode(message->challenge()));
      GLN_ASSIGN_OR_RETURN(const control::Join join, introduction_.answer());
      stream_.write(encode(join));
    } else if (message->has_welcome()) {
      return introduction_.check(control::decode(message->welcome())).status();
    }
  }
}

absl::Status Observer::record() {
  send(control::TraceOrder::kRecord);
  while (true) {
    GLN_ASSIGN_OR_RETURN(const v1::CoordinatorMessage* const message, next(absl::InfiniteDuration(), true));
    if (message == nullptr) return absl::CancelledError("interrupted before the job had begun");
    if (message->observed().begun()) return absl::OkStatus();
  }
}

absl::StatusOr<Observer::Progress> Observer::wait(absl::Duration timeout) {
  GLN_ASSIGN_OR_RETURN(const v1::CoordinatorMessage* const message, next(now() + timeout, true));
  if (message != nullptr && message->observed().has_steps()) progress_.steps = message->observed().steps();
  if (message != nullptr && message->observed().ending()) progress_.ending = true;
  progress_.interrupted = interrupted_;
  return progress_;
}

absl::StatusOr<Observer::Stopped> Observer::stop() {
  send(control::TraceOrder::kStop);
  const absl::Duration deadline = now() + kAnswerWithin;
  while (true) {
    GLN_ASSIGN_OR_RETURN(const v1::CoordinatorMessage* const message, next(deadline, false));
    if (message == nullptr) return failed(absl::UnavailableError("no answer to the order"));
    if (!message->observed().has_stopped()) continue;
    const v1::Stopped& told = message->observed().stopped();
    Stopped stopped;
    GLN_ASSIGN_OR_RETURN(stopped.plan, proto::decode(told.plan()));
    for (const v1::Seat& seat : told.seats()) {
      stopped.seats.push_back({seat.seat(), seat.member(), seat.local_rank(), seat.present()});
    }
    return stopped;
  }
}

absl::StatusOr<trace::Recording> Observer::fetch(uint32_t seat, absl::Duration timeout) {
  send(control::TraceOrder::kSend, seat);
  const absl::Duration deadline = now() + timeout;
  trace::Recording recording;
  while (true) {
    GLN_ASSIGN_OR_RETURN(const v1::CoordinatorMessage* const message, next(deadline, false));
    if (message == nullptr) {
      return absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(timeout)));
    }
    if (!message->observed().has_part() || message->observed().part().seat() != seat) continue;
    const v1::Traced& traced = message->observed().part().traced();
    GLN_RETURN_IF_ERROR(append(traced, recording));
    if (traced.last()) return recording;
  }
}

void Observer::close() {
  stream_.cancel();
  while (stream_.is_open()) stream_.wait(absl::InfiniteDuration());
}

void Observer::interrupt() {
  interrupted_ = true;
  stream_.wake();
}

void Observer::send(control::TraceOrder order, uint32_t seat) {
  v1::MemberMessage message;
  message.mutable_observe()->set_order(encode(order));
  message.mutable_observe()->set_seat(seat);
  stream_.write(std::move(message));
}

absl::StatusOr<const v1::CoordinatorMessage*> Observer::next(absl::Duration deadline, bool may_interrupt) {
  while (stream_.is_open()) {
    if (may_interrupt && interrupted_) return nullptr;
    const absl::Duration left = deadline - now();
    if (left <= absl::ZeroDuration()) return nullptr;
    switch (stream_.wait(left)) {
      case Stream::Event::kMessage:
        return &stream_.message();
      case Stream::Event::kClosed:
        return failed(stream_.status());
      case Stream::Event::kNothing:
        break;
    }
  }
  return failed(absl::UnavailableError("the stream has ended"));
}

absl::Status Observer::failed(const absl::Status& status) const {
  const std::string where = options_.coordinator.to_string();
  if (absl::IsUnimplemented(status)) {
    return absl::FailedPreconditionError(
        absl::StrCat("the server at ", where, " is not a coordinator of gleaner (", status.message(), ")"));
  }
  if (status.ok() || absl::IsUnavailable(status)) {
    return absl::UnavailableError(absl::StrCat("no answer from the coordinator at ", where, ": ",
                                               status.ok() ? "it ended the stream" : status.message()));
  }
  return status;
}

}  // namespace gleaner::member
