// How members get in: the part of Jobs that deals with strangers.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"
#include "operator/coordinator/job_messages.h"
#include "operator/coordinator/jobs.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kJoinWithin = absl::Seconds(10);
constexpr absl::Duration kAuthenticateWithin = absl::Seconds(30);
constexpr size_t kMostJoinBytes = 64 << 10;  // a token of Kubernetes has about 1 KiB
constexpr size_t kMostMessageBytes = proto::kMaxMessageBytes;

}  // namespace

void Jobs::handle(Event& event) {
  if (auto* opened = std::get_if<Opened>(&event.what)) return open(std::move(opened->stream));
  if (const auto* answer = std::get_if<Authenticated>(&event.what)) {
    return on_authenticated(event.stream, answer->status);
  }
  const auto known = known_.find(event.stream);
  if (const auto* closed = std::get_if<Closed>(&event.what)) {
    strangers_.erase(event.stream);
    if (known == known_.end()) return;
    const std::shared_ptr<Job> job = std::move(known->second.job);
    known_.erase(known);
    return job->closed(event.stream, closed->why);
  }
  const auto& message = std::get<v1::MemberMessage>(event.what);
  if (known == known_.end()) return on_first_message(event.stream, message);
  known->second.job->hear(event.stream, message);
  known->second.stream->read(kMostMessageBytes);
}

void Jobs::open(std::shared_ptr<Stream> stream) {
  std::string nonce(proto::kNonceBytes, '\0');
  const absl::Status status = env_.random->fill({reinterpret_cast<uint8_t*>(nonce.data()), nonce.size()});
  if (!status.ok()) return stream->end(status);
  v1::CoordinatorMessage message;
  v1::Challenge* challenge = message.mutable_challenge();
  challenge->set_protocol(proto::kProtocol);
  challenge->set_nonce(nonce);
  challenge->set_authentication(options_.authenticator == nullptr ? v1::AUTHENTICATION_PROOF
                                                                  : v1::AUTHENTICATION_BEARER);
  stream->send(Stream::encode(message));
  stream->read(kMostJoinBytes);
  Stranger& stranger = strangers_[stream->id()];
  stranger.nonces.coordinator = std::move(nonce);
  stranger.since = now();
  stranger.stream = std::move(stream);
}

void Jobs::on_first_message(StreamId id, const v1::MemberMessage& message) {
  const auto found = strangers_.find(id);
  if (found == strangers_.end()) return;  // dropped
  Stranger& stranger = found->second;
  if (!message.has_join()) {
    return refuse(id, absl::InvalidArgumentError("expected Join as the first message of a member"));
  }
  auto job = check(id, stranger, message.join());
  if (!job.ok()) return refuse(id, job.status());
  if (stranger.job != nullptr) return;  // its token is being looked at
  admit(id, *std::move(job));
}

absl::StatusOr<std::shared_ptr<Job>> Jobs::check(StreamId id, Stranger& stranger, const v1::Join& join) {
  if (join.protocol() != proto::kProtocol) {
    return absl::FailedPreconditionError(absl::StrCat("the member speaks protocol ", join.protocol(),
                                                      ", this coordinator protocol ", proto::kProtocol,
                                                      "; install the same version of gleaner on both"));
  }
  v1::Identity identity;
  if (!identity.ParseFromString(join.identity())) {
    return absl::InvalidArgumentError("the member's identity can't be read");
  }
  std::shared_ptr<Job> job = find(sole_.empty() ? identity.job() : sole_);
  if (job == nullptr) {
    // Not an error for good: a member may be faster than whoever adds its job.
    return absl::NotFoundError(absl::StrCat("no job '", identity.job(), "' is coordinated here"));
  }
  stranger.nonces.member = join.nonce();
  stranger.identity = decode(identity);
  stranger.resume = decode_resume(join);
  const absl::Status status =
      job->token().empty() ? ask(id, *job, stranger, join.bearer()) : check_proof(*job, stranger, join);
  if (!status.ok()) {
    job->refused();
    return status;
  }
  if (identity.job() != job->name()) {
    return absl::InvalidArgumentError(absl::StrCat("this coordinator's job is '", job->name(), "', not '",
                                                   identity.job(), "'; check GLEANER_JOB, --job"));
  }
  if (job->token().empty()) stranger.job = job;
  return job;
}

absl::Status Jobs::check_proof(const Job& job, const Stranger& stranger, const v1::Join& join) const {
  if (proto::check_proof(join.proof(), job.token(), proto::Prover::kMember, stranger.nonces.coordinator, join.nonce(),
                         join.identity())) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      "the token is not this job's; give every member the coordinator's token file (GLEANER_TOKEN_FILE, "
      "--token-file)");
}

absl::Status Jobs::ask(StreamId id, const Job& job, const Stranger& stranger, const std::string& bearer) {
  if (bearer.empty()) {
    return absl::PermissionDeniedError("members of this job show a bearer token; this one has shown none");
  }
  options_.authenticator->authenticate(job.name(), stranger.identity, bearer,
                                       [events = std::weak_ptr(events_), id](const absl::Status& status) {
                                         if (const auto alive = events.lock()) alive->post({id, Authenticated{status}});
                                       });
  return absl::OkStatus();
}

void Jobs::on_authenticated(StreamId id, const absl::Status& status) {
  const auto found = strangers_.find(id);
  if (found == strangers_.end() || found->second.job == nullptr) return;  // gone meanwhile
  std::shared_ptr<Job> job = std::exchange(found->second.job, nullptr);
  if (find(job->name()) != job) {
    return refuse(id, absl::NotFoundError(absl::StrCat("job '", job->name(), "' is not coordinated here any more")));
  }
  if (status.ok()) return admit(id, std::move(job));
  job->refused();
  refuse(id, status);
}

void Jobs::admit(StreamId id, std::shared_ptr<Job> job) {
  const auto found = strangers_.find(id);
  Stranger stranger = std::move(found->second);
  strangers_.erase(found);
  stranger.stream->know();
  known_[id] = {stranger.stream, job};
  job->admit(stranger.stream, std::move(stranger.nonces), stranger.identity, stranger.resume);
  stranger.stream->read(kMostMessageBytes);
}

void Jobs::refuse(StreamId id, const absl::Status& why) {
  const auto found = strangers_.find(id);
  const std::shared_ptr<Stream> stream = std::move(found->second.stream);
  strangers_.erase(found);
  if (absl::IsNotFound(why)) {
    env_.log->debug("a member was not let in", "peer", stream->peer(), "reason", why.message());
  } else {
    env_.log->warning("a member was not let in", "peer", stream->peer(), "reason", why.message());
  }
  stream->end(why);
}

// Those that connect and prove nothing, and those whose token nobody looks at.
void Jobs::drop_strangers() {
  const absl::Duration time = now();
  std::vector<StreamId> late;
  for (const auto& [id, stranger] : strangers_) {
    if (time - stranger.since >= (stranger.job == nullptr ? kJoinWithin : kAuthenticateWithin)) late.push_back(id);
  }
  for (const StreamId id : late) {
    refuse(id, strangers_[id].job == nullptr
                   ? absl::DeadlineExceededError("expected Join; the stream was silent")
                   : absl::UnavailableError("the token could not be checked in time; try again"));
  }
}

}  // namespace gleaner::coordinator
