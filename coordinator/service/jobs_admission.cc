// The part of Jobs that admits members: handshake, authentication and time limits.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/control/codec.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"
#include "coordinator/service/jobs.h"

namespace gleaner::coordinator {
namespace {

constexpr absl::Duration kJoinWithin = absl::Seconds(10);
constexpr absl::Duration kAuthenticateWithin = absl::Seconds(30);
constexpr size_t kMostJoinBytes = 64 << 10;  // a service account token of Kubernetes has about 1 KiB
constexpr size_t kMostMessageBytes = proto::kMaxMessageBytes;

}  // namespace

void Jobs::handle(Event& event) {
  if (auto* opened = std::get_if<Opened>(&event.what)) return open(std::move(opened->stream));
  if (const auto* answer = std::get_if<Authenticated>(&event.what)) {
    return on_authenticated(event.stream, answer->status);
  }
  if (auto* modelled = std::get_if<Modelled>(&event.what)) {
    if (const std::shared_ptr<Job> job = modelled->job.lock()) {
      job->on_modelled(modelled->request, std::move(modelled->models));
    }
    return;
  }
  const auto joined = joined_streams_.find(event.stream);
  if (const auto* closed = std::get_if<Closed>(&event.what)) {
    new_streams_.erase(event.stream);
    if (joined == joined_streams_.end()) return;
    const std::shared_ptr<Job> job = std::move(joined->second.job);
    joined_streams_.erase(joined);
    return job->on_closed(event.stream, closed->why);
  }
  const auto& message = std::get<v1::MemberMessage>(event.what);
  if (joined == joined_streams_.end()) return on_first_message(event.stream, message);
  joined->second.job->on_message(event.stream, message);
  joined->second.stream->read(kMostMessageBytes);
}

void Jobs::open(std::shared_ptr<Stream> stream) {
  std::string nonce(proto::kNonceBytes, '\0');
  const absl::Status status = env_.random->fill({reinterpret_cast<uint8_t*>(nonce.data()), nonce.size()});
  if (!status.ok()) return stream->end(status);
  const control::Challenge challenge{proto::kProtocol, nonce, options_.authenticator != nullptr};
  stream->send(Stream::encode(encode(challenge)));
  stream->read(kMostJoinBytes);
  NewStream& opened = new_streams_[stream->id()];
  opened.nonces.coordinator = std::move(nonce);
  opened.since = now();
  opened.stream = std::move(stream);
}

void Jobs::on_first_message(StreamId id, const v1::MemberMessage& message) {
  const auto found = new_streams_.find(id);
  if (found == new_streams_.end()) return;  // the stream was dropped or closed meanwhile
  NewStream& opened = found->second;
  if (!message.has_join()) {
    return refuse(id, absl::InvalidArgumentError("expected Join as the first message of a member"));
  }
  auto job = find_job(id, opened, control::decode(message.join()));
  if (!job.ok()) return refuse(id, job.status());
  if (opened.job != nullptr) return;  // the authenticator has not answered yet
  admit(id, *std::move(job));
}

absl::StatusOr<std::shared_ptr<Job>> Jobs::find_job(StreamId id, NewStream& opened, const control::Join& join) {
  if (join.protocol != proto::kProtocol) {
    return absl::FailedPreconditionError(absl::StrCat("the member speaks protocol ", join.protocol,
                                                      ", this coordinator protocol ", proto::kProtocol,
                                                      "; install the same version of gleaner on both"));
  }
  GLN_ASSIGN_OR_RETURN(control::Identity identity, control::parse_identity(join.identity));
  std::shared_ptr<Job> job = find(sole_.empty() ? identity.job : sole_);
  if (job == nullptr) {
    GLN_RETURN_IF_ERROR(check_name("the name of the member's job", identity.job));
    // A member tries again after NotFound: its job may not have been added yet.
    return absl::NotFoundError(absl::StrCat("no job '", identity.job, "' is coordinated here"));
  }
  opened.nonces.member = join.nonce;
  opened.identity = identity;
  opened.resume = join.resume;
  const absl::Status status =
      job->token().empty() ? begin_authentication(id, *job, opened, join.bearer) : check_proof(*job, opened, join);
  if (!status.ok()) {
    job->on_refused();
    return status;
  }
  if (identity.job != job->name()) {
    return absl::InvalidArgumentError(absl::StrCat("this coordinator's job is '", job->name(), "', not ",
                                                   quote(identity.job), "; check GLEANER_JOB, --job"));
  }
  if (job->token().empty()) opened.job = job;
  return job;
}

absl::Status Jobs::check_proof(const Job& job, const NewStream& opened, const control::Join& join) const {
  if (proto::check_proof(join.proof, job.token(), proto::Prover::kMember, opened.nonces.coordinator, join.nonce,
                         join.identity)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError(
      "the token is not this job's; give every member the coordinator's token file (GLEANER_TOKEN_FILE, "
      "--token-file)");
}

absl::Status Jobs::begin_authentication(StreamId id, const Job& job, const NewStream& opened,
                                        const std::string& bearer) {
  if (bearer.empty()) {
    return absl::PermissionDeniedError("members of this job must show a bearer token; this member has shown none");
  }
  options_.authenticator->authenticate(job.name(), opened.identity, bearer,
                                       [events = std::weak_ptr(events_), id](const absl::Status& status) {
                                         if (const auto alive = events.lock()) alive->post({id, Authenticated{status}});
                                       });
  return absl::OkStatus();
}

void Jobs::on_authenticated(StreamId id, const absl::Status& status) {
  const auto found = new_streams_.find(id);
  // The stream may have been dropped or closed meanwhile.
  if (found == new_streams_.end() || found->second.job == nullptr) return;
  std::shared_ptr<Job> job = std::exchange(found->second.job, nullptr);
  if (find(job->name()) != job) {
    return refuse(id, absl::NotFoundError(absl::StrCat("job '", job->name(), "' is not coordinated here any more")));
  }
  if (status.ok()) return admit(id, std::move(job));
  job->on_refused();
  refuse(id, status);
}

void Jobs::admit(StreamId id, std::shared_ptr<Job> job) {
  const auto found = new_streams_.find(id);
  NewStream opened = std::move(found->second);
  new_streams_.erase(found);
  opened.stream->on_authenticated();
  joined_streams_[id] = {opened.stream, job};
  job->admit(opened.stream, std::move(opened.nonces), opened.identity, opened.resume);
  opened.stream->read(kMostMessageBytes);
}

void Jobs::refuse(StreamId id, const absl::Status& why) {
  const auto found = new_streams_.find(id);
  const std::shared_ptr<Stream> stream = std::move(found->second.stream);
  new_streams_.erase(found);
  if (absl::IsNotFound(why)) {
    env_.log->debug("a member was not admitted", "peer", stream->peer(), "reason", why.message());
  } else {
    env_.log->warning("a member was not admitted", "peer", stream->peer(), "reason", why.message());
  }
  stream->end(why);
}

// Ends new streams that have not sent Join in time, and those whose bearer token was not checked in time.
void Jobs::drop_late_streams() {
  const absl::Duration time = now();
  std::vector<StreamId> late;
  for (const auto& [id, opened] : new_streams_) {
    if (time - opened.since >= (opened.job == nullptr ? kJoinWithin : kAuthenticateWithin)) late.push_back(id);
  }
  for (const StreamId id : late) {
    refuse(id, new_streams_[id].job == nullptr
                   ? absl::DeadlineExceededError("expected Join; the stream was silent")
                   : absl::UnavailableError("the token could not be checked in time; try again"));
  }
}

}  // namespace gleaner::coordinator
