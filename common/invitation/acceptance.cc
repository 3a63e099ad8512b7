#include "common/invitation/acceptance.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/names.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"
#include "common/invitation/call.h"
#include "common/proto/proof.h"

namespace gleaner::invitation {
namespace {

constexpr int kMostStreams = 64;

// Ends a stream that is turned away.
class Refusal final : public grpc::ServerBidiReactor<v1::Invite, v1::InviteAnswer> {
 public:
  explicit Refusal(const absl::Status& status) {
    Finish({static_cast<grpc::StatusCode>(status.code()), std::string(status.message())});
  }
  void OnDone() override { delete this; }
};

}  // namespace

Acceptance::Reactor* Acceptance::open(std::shared_ptr<Acceptance> self, grpc::CallbackServerContext* context) {
  std::string nonce(proto::kNonceBytes, '\0');
  const absl::Status status = env_.random->fill({reinterpret_cast<uint8_t*>(nonce.data()), nonce.size()});
  if (!status.ok()) return new Refusal(status);
  {
    absl::MutexLock lock(&mutex_);
    if (streams_ == kMostStreams) {
      return new Refusal(absl::ResourceExhaustedError("too many inviters dial this summer; try again in a moment"));
    }
    ++streams_;
  }
  return Call::start(std::move(self), context, token_, std::move(nonce));
}

absl::StatusOr<Invitation> Acceptance::check(const Call& call, const v1::Invite& invite) const {
  GLN_ASSIGN_OR_RETURN(Invitation invitation, call.handshake().check(invite));
  GLN_ASSIGN_OR_RETURN(invitation.coordinator, coordinator_of(invitation, call.peer(), network_id()));
  return invitation;
}

void Acceptance::on_invite(const std::shared_ptr<Call>& call, const v1::Invite& invite) {
  absl::StatusOr<Invitation> invitation = check(*call, invite);
  absl::MutexLock lock(&mutex_);
  if (invitation.ok() && stopped_) invitation = absl::UnavailableError("the summer's process is about to end");
  if (invitation.ok() && serving_ != nullptr) {
    invitation = absl::ResourceExhaustedError(absl::StrCat("it serves another job, ", quote(job_)));
  }
  if (!invitation.ok()) {
    env_.log->warning("an invitation was refused", "peer", call->peer(), "reason", invitation.status().message());
    return call->end(invitation.status());
  }
  call->on_checked();
  v1::InviteAnswer answer;
  *answer.mutable_accepted() = call->handshake().accept(invite);
  call->send(std::move(answer));
  job_ = invitation->job;
  accepted_ = *std::move(invitation);
  serving_ = call;
  is_gone_ = false;
}

void Acceptance::on_gone(const Call* call) {
  absl::MutexLock lock(&mutex_);
  if (serving_.get() != call || std::exchange(is_gone_, true)) return;
  if (on_gone_ != nullptr) on_gone_();
}

void Acceptance::on_done() {
  absl::MutexLock lock(&mutex_);
  --streams_;
}

std::optional<Invitation> Acceptance::next() {
  absl::MutexLock lock(&mutex_);
  const auto is_due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopped_ || accepted_.has_value(); };
  mutex_.Await(absl::Condition(&is_due));
  if (stopped_) return std::nullopt;
  return std::exchange(accepted_, std::nullopt);
}

void Acceptance::on_inviter_gone(std::function<void()> action) {
  absl::MutexLock lock(&mutex_);
  if (is_gone_) action();
  on_gone_ = std::move(action);
}

void Acceptance::joined() {
  absl::MutexLock lock(&mutex_);
  if (serving_ == nullptr) return;
  v1::InviteAnswer answer;
  answer.mutable_joined();
  serving_->send(std::move(answer));
}

void Acceptance::end(const absl::Status& how) {
  absl::MutexLock lock(&mutex_);
  on_gone_ = nullptr;
  if (serving_ != nullptr) std::exchange(serving_, nullptr)->end(how);
}

void Acceptance::stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

}  // namespace gleaner::invitation
