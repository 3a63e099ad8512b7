#include "common/member/client.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/member/action_executor.h"
#include "common/member/coordinator_connection.h"
#include "common/member/credentials.h"
#include "common/member/introduction.h"
#include "common/member/message_dispatcher.h"
#include "common/member/trace_messages.h"
#include "common/proto/grpc_start.h"

namespace gleaner::member {
namespace {

constexpr absl::Duration kSummersHeartbeat =
    absl::Milliseconds(250);  // short, so that the loss of a summer is detected soon

Membership::Terms terms_of(const JoinOptions& options) {
  Membership::Terms terms;
  terms.is_summer = options.identity.role == Role::kSummer;
  terms.coordinator = options.coordinator.to_string();
  terms.timeout = options.timeout;
  terms.plan_timeout = options.plan_timeout;
  if (terms.is_summer) terms.pace.heartbeat = kSummersHeartbeat;
  return terms;
}

// Returns a function that draws numbers from 0 to 1.
std::function<double()> fractions_of(Random* random) {
  return [random] {
    uint8_t byte = 0;
    return random->fill({&byte, 1}).ok() ? byte / 255.0 : 0.0;
  };
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::start(const Env& env, const JoinOptions& options, Listener* listener) {
  if (options.token.empty() && options.token_file.empty()) {
    return absl::InvalidArgumentError("the token is empty; expected the contents of the job's token file");
  }
  if (options.coordinator.port == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the coordinator's address ", options.coordinator.to_string(), " has no port"));
  }
  GLN_RETURN_IF_ERROR(proto::start_grpc(proto::channel_threads() + 1, "the connection to the coordinator"));
  GLN_RETURN_IF_ERROR(channel_credentials(options).status());  // reports files that can't be used at once
  auto client = std::unique_ptr<Client>(new Client(env, options, listener));
  GLN_ASSIGN_OR_RETURN(client->thread_, start_thread("gln-coord", [client = client.get()] { client->run(); }));
  return client;
}

Client::Client(const Env& env, const JoinOptions& options, Listener* listener)
    : env_(env),
      options_(options),
      membership_(terms_of(options_), fractions_of(env_.random)),
      introduction_(std::make_unique<Introduction>(options_, env_.random)),
      connection_(std::make_unique<CoordinatorConnection>(options_)),
      dispatcher_(std::make_unique<MessageDispatcher>(&membership_, introduction_.get())),
      executor_(std::make_unique<ActionExecutor>(env_, options_.coordinator, &membership_, introduction_.get(),
                                                 connection_.get(), listener, &leave_outcome_)),
      mailbox_([this] { connection_->wake(); }) {}

Client::~Client() { stop(); }

void Client::declare(const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations) {
  mailbox_.post([this, tensors, operations] { membership_.declare(tensors, operations, now()); });
}

void Client::acknowledge(uint32_t epoch) {
  mailbox_.post([this, epoch] { membership_.acknowledge(epoch, now()); });
}

void Client::refuse(uint32_t epoch, const absl::Status& why) {
  mailbox_.post([this, epoch, why] { membership_.refuse(epoch, why, now()); });
}

void Client::report(const Report& report) {
  mailbox_.post([this, report] { membership_.report(report); });
}

void Client::report_now(const Report& report) {
  mailbox_.post([this, report] { membership_.report_now(report, now()); });
}

void Client::begun(const std::string& tensor, uint64_t push_pulls) {
  mailbox_.post([this, tensor, push_pulls] { membership_.begun(tensor, push_pulls, now()); });
}

void Client::push_pulls(uint32_t epoch, std::vector<uint64_t> counts) {
  mailbox_.post([this, epoch, counts = std::move(counts)] { membership_.push_pulls(epoch, counts, now()); });
}

void Client::fault(uint32_t member, uint32_t epoch, const absl::Status& why) {
  mailbox_.post([this, member, epoch, why] { membership_.fault(member, epoch, why, now()); });
}

void Client::on_owner_follows(uint32_t epoch, bool by_rank) {
  mailbox_.post([this, epoch, by_rank] { membership_.on_owner_follows(epoch, by_rank); });
}

void Client::send_trace(uint64_t recording, trace::Recording contents) {
  mailbox_.post([this, recording, contents = std::move(contents)] {
    if (!membership_.is_admitted()) return;  // the coordinator that sent the order is lost
    for (v1::Traced& piece : encode(recording, contents)) {
      v1::MemberMessage message;
      message.mutable_traced()->Swap(&piece);
      connection_->write(std::move(message));
    }
  });
}

bool Client::leave(const absl::Status& status, bool again, absl::Duration timeout) {
  leave_outcome_.reset();
  mailbox_.post([=, this] { membership_.leave(status, again, timeout, now()); });
  return options_.identity.role == Role::kSummer || leave_outcome_.await();
}

void Client::stop() {
  stopping_ = true;
  if (thread_.joinable()) {
    connection_->wake();
    thread_.join();
  }
  mailbox_.close();
  leave_outcome_.set_left();  // wakes a caller that waits in leave()
}

void Client::run() {
  membership_.begin(now());
  executor_->run();
  while (!stopping_) {
    const Stream::Event event = connection_->wait(membership_.tick_interval());
    mailbox_.drain();
    if (event == Stream::Event::kMessage) dispatcher_->dispatch(connection_->message(), now());
    if (event == Stream::Event::kClosed) membership_.on_closed(connection_->status(), now());
    membership_.on_tick(connection_->is_written(), now());
    executor_->run();
  }
}

}  // namespace gleaner::member
