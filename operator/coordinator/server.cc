#include "operator/coordinator/server.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kTickEvery = absl::Milliseconds(100);
constexpr absl::Duration kLinger = absl::Seconds(2);  // for everyone to hear how it ended
constexpr int kMaxMemberMessageBytes = 64 << 20;      // 100,000 tensors declared at once have about 10 MB

absl::StatusOr<std::string> random_nonce(Random& random) {
  std::string nonce(proto::kNonceBytes, '\0');
  GLN_RETURN_IF_ERROR(random.fill({reinterpret_cast<uint8_t*>(nonce.data()), nonce.size()}));
  return nonce;
}

// Whether `address` can be listened on: gRPC would say only that it can't, and log what it thinks of it.
absl::Status check_address(const Address& address) {
  const auto failed = [&](absl::string_view reason) {
    return absl::InvalidArgumentError(absl::StrCat("can't listen on ", address.to_string(), ": ", reason));
  };
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (error != 0) return failed(::gai_strerror(error));
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool bound = ::bind(socket, found->ai_addr, found->ai_addrlen) == 0 && ::listen(socket, 1) == 0;
  const int reason = errno;
  ::freeaddrinfo(found);
  ::close(socket);
  if (bound) return absl::OkStatus();
  if (reason == EADDRINUSE) {
    return absl::AlreadyExistsError(absl::StrCat("can't listen on ", address.to_string(),
                                                 ": the port is in use; choose another, or 0 for any free one"));
  }
  return failed(std::strerror(reason));
}

Identity identity_of(const v1::Identity& message) {
  Identity identity;
  identity.role = message.role() == v1::ROLE_SUMMER ? Role::kSummer : Role::kWorker;
  if (message.has_index()) identity.index = message.index();
  identity.local_rank = message.local_rank();
  identity.local_size = message.local_size();
  identity.address = message.address();
  identity.bits_per_second = message.bits_per_second();
  return identity;
}

}  // namespace

Server::Server(const Env& env, const Options& options, std::string token, Metrics* metrics)
    : env_(env),
      options_(options),
      token_(std::move(token)),
      metrics_(metrics),
      core_(options, env.clock->since_start()) {}

absl::StatusOr<std::unique_ptr<Server>> Server::start(const Env& env, const Options& options, const std::string& token,
                                                      const Address& listen, Metrics* metrics) {
  GLN_RETURN_IF_ERROR(validate(options));
  if (token.empty()) return absl::InvalidArgumentError("the token is empty");
  auto server = std::unique_ptr<Server>(new Server(env, options, token, metrics));
  GLN_ASSIGN_OR_RETURN(server->job_nonce_, random_nonce(*env.random));
  GLN_RETURN_IF_ERROR(server->listen(listen));
  server->thread_ = std::thread([raw = server.get()] { raw->run(); });
  return server;
}

absl::Status Server::listen(const Address& address) {
  GLN_RETURN_IF_ERROR(check_address(address));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address.to_string(), grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);  // a second coordinator on this port is a mistake
  builder.SetMaxReceiveMessageSize(kMaxMemberMessageBytes);
  builder.SetMaxSendMessageSize(proto::kMaxMessageBytes);
  builder.RegisterService(this);
  grpc_ = builder.BuildAndStart();
  if (grpc_ == nullptr || port == 0) {
    return absl::UnavailableError(absl::StrCat("gRPC can't listen on ", address.to_string(), "; its own log says why"));
  }
  address_ = {address.host, static_cast<uint16_t>(port)};
  return absl::OkStatus();
}

Server::~Server() {
  stop(absl::CancelledError("the coordinator is shutting down"));
  if (thread_.joinable()) thread_.join();
  if (grpc_ != nullptr) {
    grpc_->Shutdown(gpr_now(GPR_CLOCK_REALTIME));
    grpc_->Wait();
  }
}

void Server::stop(const absl::Status& why) { post({0, Stopped{why}}); }

std::optional<absl::Status> Server::outcome() const {
  absl::MutexLock lock(&mutex_);
  return outcome_;
}

absl::Status Server::wait() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&done_));
  return *outcome_;
}

std::optional<Server::Culprit> Server::culprit() const {
  absl::MutexLock lock(&mutex_);
  return culprit_;
}

Summary Server::summary() const {
  absl::MutexLock lock(&mutex_);
  return summary_;
}

grpc::ServerBidiReactor<v1::MemberMessage, v1::CoordinatorMessage>* Server::Join(grpc::CallbackServerContext* context) {
  StreamId id = 0;
  {
    absl::MutexLock lock(&mutex_);
    id = ++last_id_;
  }
  std::shared_ptr<Stream> stream = Stream::create(id, context->peer(), this);
  Stream* reactor = stream.get();
  post({id, Opened{std::move(stream)}});
  reactor->start();
  return reactor;
}

void Server::on_message(StreamId stream, v1::MemberMessage message) { post({stream, std::move(message)}); }

void Server::on_closed(StreamId stream, const absl::Status& why) { post({stream, Closed{why}}); }

void Server::post(Event event) {
  absl::MutexLock lock(&mutex_);
  events_.push_back(std::move(event));
}

std::vector<Server::Event> Server::next_events() {
  absl::MutexLock lock(&mutex_);
  const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !events_.empty(); };
  mutex_.AwaitWithTimeout(absl::Condition(&some), kTickEvery);
  return std::exchange(events_, {});
}

void Server::run() {
  name_this_thread("gln-job");
  std::optional<absl::Duration> ended;
  while (!ended.has_value() || (!peers_.empty() && now() - *ended < kLinger)) {
    for (Event& event : next_events()) handle(event);
    core_.on_tick(now(), actions_);
    carry_out();
    drop_strangers();
    if (metrics_ != nullptr) metrics_->update(core_);
    if (!ended.has_value() && core_.outcome().has_value()) {
      ended = now();
      publish();
    }
  }
  for (auto& [id, peer] : peers_) peer.stream->end(absl::UnavailableError("the job has ended"));
  peers_.clear();
  absl::MutexLock lock(&mutex_);
  done_ = true;
}

void Server::publish() {
  const absl::Status& outcome = *core_.outcome();
  const Roster& roster = core_.roster();
  absl::MutexLock lock(&mutex_);
  outcome_ = outcome;
  summary_ = core_.summary();
  if (const std::optional<uint32_t> seat = core_.culprit(); seat.has_value()) {
    culprit_ = Culprit{roster.member_of(*seat), roster.is_summer(*seat) ? 0 : *seat % options_.local_ranks};
  }
}

void Server::handle(Event& event) {
  if (auto* opened = std::get_if<Opened>(&event.what)) return open(std::move(opened->stream));
  if (const auto* stopped = std::get_if<Stopped>(&event.what)) {
    core_.stop(stopped->why, actions_);
    return carry_out();
  }
  const auto found = peers_.find(event.stream);
  if (found == peers_.end()) return;
  if (const auto* closed = std::get_if<Closed>(&event.what)) {
    peers_.erase(found);
    core_.on_disconnected(event.stream, closed->why, actions_);
  } else if (const auto* message = std::get_if<v1::MemberMessage>(&event.what)) {
    if (found->second.member_nonce.empty()) {
      admit(event.stream, found->second, *message);
    } else {
      hear(event.stream, *message);
    }
  }
  carry_out();
}

void Server::open(std::shared_ptr<Stream> stream) {
  auto nonce = random_nonce(*env_.random);
  if (!nonce.ok()) return stream->end(nonce.status());
  auto message = std::make_shared<v1::CoordinatorMessage>();
  message->mutable_challenge()->set_protocol(proto::kProtocol);
  message->mutable_challenge()->set_nonce(*nonce);
  stream->send(std::move(message));
  const StreamId id = stream->id();
  peers_[id] = {std::move(stream), *std::move(nonce), "", now()};
}

absl::StatusOr<Identity> Server::check(Peer& peer, const v1::Join& join) const {
  if (join.protocol() != proto::kProtocol) {
    return absl::FailedPreconditionError(absl::StrCat("the member speaks protocol ", join.protocol(),
                                                      ", this coordinator protocol ", proto::kProtocol,
                                                      "; install the same version of gleaner on both"));
  }
  if (!proto::check_proof(join.proof(), token_, proto::Prover::kMember, peer.nonce, join.nonce(), join.identity())) {
    return absl::PermissionDeniedError(
        "the token is not this job's; give every member the coordinator's token file (GLEANER_TOKEN_FILE, "
        "--token-file)");
  }
  v1::Identity identity;
  if (!identity.ParseFromString(join.identity())) {
    return absl::InvalidArgumentError("the member's identity can't be read");
  }
  if (identity.job() != options_.job) {
    return absl::InvalidArgumentError(absl::StrCat("this coordinator's job is '", options_.job, "', not '",
                                                   identity.job(), "'; check GLEANER_JOB, --job"));
  }
  peer.member_nonce = join.nonce();
  return identity_of(identity);
}

void Server::admit(StreamId id, Peer& peer, const v1::MemberMessage& message) {
  const absl::StatusOr<Identity> identity =
      message.has_join() ? check(peer, message.join())
                         : absl::InvalidArgumentError("expected Join as the first message of a member");
  if (identity.ok()) return core_.on_joined(id, *identity, std::nullopt, now(), actions_);
  env_.log->warning("a member was not let in", "peer", peer.stream->peer(), "reason", identity.status().message());
  peer.stream->end(identity.status());
  peers_.erase(id);
}

void Server::hear(StreamId id, const v1::MemberMessage& message) {
  using Kind = v1::MemberMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kDeclare: {
      const auto tensors = proto::decode(message.declare().tensors());
      if (tensors.ok()) return core_.on_declared(id, *tensors, now(), actions_);
      return core_.on_disconnected(id, tensors.status(), actions_);
    }
    case Kind::kRecalled: {
      auto plan = proto::decode(message.recalled().plan());
      if (plan.ok()) return core_.on_recalled(id, *std::move(plan), now(), actions_);
      return core_.on_disconnected(id, plan.status(), actions_);
    }
    case Kind::kAcknowledge:
      return core_.on_acknowledged(id, message.acknowledge().epoch(), now(), actions_);
    case Kind::kRefuse:
      return core_.on_refused(id, message.refuse().epoch(), proto::decode(message.refuse().why()), now(), actions_);
    case Kind::kReport: {
      const v1::Report& report = message.report();
      return core_.on_report(id, {report.steps(), report.bytes(), report.communication_seconds()}, now());
    }
    case Kind::kFault:
      return core_.on_fault(id, message.fault().member(), proto::decode(message.fault().why()), now(), actions_);
    case Kind::kLeave:
      return core_.on_left(id, proto::decode(message.leave().status()), now(), actions_);
    case Kind::kJoin:
      return core_.on_disconnected(id, absl::InvalidArgumentError("it joined twice on one stream"), actions_);
    case Kind::kHeartbeat:
    case Kind::KIND_NOT_SET:  // of a later version, and meant to be harmless to this one
      return core_.on_heartbeat(id, now());
  }
}

// Those that connect and prove nothing.
void Server::drop_strangers() {
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    const auto here = peer++;
    if (!here->second.member_nonce.empty() || now() - here->second.since < options_.deadline) continue;
    here->second.stream->end(absl::DeadlineExceededError("expected Join; the stream was silent"));
    peers_.erase(here);
  }
}

void Server::carry_out() {
  for (const std::string& note : actions_.notes) env_.log->info(note, "job", options_.job);
  for (const std::string& warning : actions_.warnings) env_.log->warning(warning, "job", options_.job);
  for (const Send& send : actions_.sends) tell(send.stream, send.message);
  actions_ = {};
}

void Server::tell(StreamId id, const Message& message) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  Stream& stream = *found->second.stream;
  if (const auto* rejected = std::get_if<Rejected>(&message)) {
    stream.end(rejected->why);
    peers_.erase(found);
    return;
  }
  stream.send(encode(found->second, message));
  const bool last = std::holds_alternative<Failed>(message) || std::holds_alternative<Finished>(message) ||
                    std::holds_alternative<Goodbye>(message);
  // It stays among the peers until the member has closed too: then it has heard.
  if (last) stream.end(absl::OkStatus());
}

Stream::Outgoing Server::encode(const Peer& peer, const Message& message) {
  auto encoded = std::make_shared<v1::CoordinatorMessage>();
  if (const auto* welcome = std::get_if<Welcome>(&message)) {
    v1::Welcome* target = encoded->mutable_welcome();
    target->set_member(welcome->member);
    target->set_workers(options_.workers);
    target->set_local_ranks(options_.local_ranks);
    target->set_summers(welcome->summers);
    target->set_session(welcome->session);
    target->set_job_nonce(job_nonce_);
    target->set_deadline_seconds(absl::ToDoubleSeconds(options_.deadline));
    target->set_proof(
        proto::make_proof(token_, proto::Prover::kCoordinator, peer.nonce, peer.member_nonce, job_nonce_));
  } else if (std::holds_alternative<Recall>(message)) {
    encoded->mutable_recall();
  } else if (const auto* prepare = std::get_if<Prepare>(&message)) {
    if (encoded_plan_ != prepare->plan) {
      encoded_plan_ = prepare->plan;
      proto::encode(*prepare->plan, encoded->mutable_prepare()->mutable_plan());
      encoded_prepare_ = encoded;
    }
    return encoded_prepare_;
  } else if (const auto* commit = std::get_if<Commit>(&message)) {
    encoded->mutable_commit()->set_epoch(commit->epoch);
  } else if (const auto* failed = std::get_if<Failed>(&message)) {
    proto::encode(failed->status, encoded->mutable_failed()->mutable_status());
  } else if (std::holds_alternative<Finished>(message)) {
    encoded->mutable_finished();
  } else if (std::holds_alternative<Goodbye>(message)) {
    encoded->mutable_goodbye();
  } else {
    encoded->mutable_heartbeat();
  }
  return encoded;
}

}  // namespace gleaner::coordinator
