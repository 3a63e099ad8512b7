#include "common/invitation/handshake.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"

namespace gleaner::invitation {
namespace {

absl::Status other_version(uint32_t inviter, uint32_t summer) {
  return absl::FailedPreconditionError(absl::StrCat("the inviter speaks protocol ", inviter, ", the summer protocol ",
                                                    summer, "; install the same version of gleaner on both"));
}

}  // namespace

absl::StatusOr<v1::Invite> InviterHandshake::answer(const v1::SummerChallenge& challenge) {
  if (challenge.protocol() != proto::kProtocol) return other_version(proto::kProtocol, challenge.protocol());
  if (challenge.nonce().size() != proto::kNonceBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the summer's challenge has a nonce of ", challenge.nonce().size(),
                                                   " bytes; expected ", proto::kNonceBytes));
  }
  challenge_ = challenge.nonce();
  v1::Invite invite;
  invite.set_protocol(proto::kProtocol);
  invite.set_invitation(invitation_);
  invite.set_nonce(nonce_);
  invite.set_proof(proto::make_proof(token_, proto::Prover::kInviter, challenge_, nonce_, invitation_));
  return invite;
}

absl::Status InviterHandshake::check(const v1::Accepted& accepted) const {
  if (proto::check_proof(accepted.proof(), token_, proto::Prover::kWaitingSummer, challenge_, nonce_, invitation_)) {
    return absl::OkStatus();
  }
  return absl::PermissionDeniedError("the server there does not know the token of the summers; check the address");
}

v1::SummerChallenge SummerHandshake::challenge() const {
  v1::SummerChallenge challenge;
  challenge.set_protocol(proto::kProtocol);
  challenge.set_nonce(nonce_);
  return challenge;
}

absl::StatusOr<Invitation> SummerHandshake::check(const v1::Invite& invite) const {
  if (invite.protocol() != proto::kProtocol) return other_version(invite.protocol(), proto::kProtocol);
  if (!proto::check_proof(invite.proof(), token_, proto::Prover::kInviter, nonce_, invite.nonce(),
                          invite.invitation())) {
    return absl::PermissionDeniedError(
        "the inviter's token is not this summer's; give both the same file (GLEANER_SUMMERS_TOKEN_FILE, "
        "--invite-token-file, and --token-file of gleaner-summer)");
  }
  return parse_invitation(invite.invitation());
}

v1::Accepted SummerHandshake::accept(const v1::Invite& invite) const {
  v1::Accepted accepted;
  accepted.set_proof(
      proto::make_proof(token_, proto::Prover::kWaitingSummer, nonce_, invite.nonce(), invite.invitation()));
  return accepted;
}

}  // namespace gleaner::invitation
