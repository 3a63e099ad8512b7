#include "common/member/introduction.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/control/codec.h"
#include "common/member/credentials.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"

namespace gleaner::member {

absl::StatusOr<control::Join> Introduction::answer() {
  const control::Challenge& challenge = unanswered_;
  if (challenge.protocol != proto::kProtocol) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator at ", options_.coordinator.to_string(), " speaks protocol ", challenge.protocol,
                     ", this member protocol ", proto::kProtocol, "; install the same version of gleaner on both"));
  }
  nonce_.resize(proto::kNonceBytes);
  GLN_RETURN_IF_ERROR(random_->fill({reinterpret_cast<uint8_t*>(nonce_.data()), nonce_.size()}));
  challenge_ = challenge.nonce;
  shows_bearer_ = challenge.wants_bearer;
  control::Join join;
  join.protocol = proto::kProtocol;
  join.identity = control::serialize(options_.identity);
  join.nonce = nonce_;
  if (shows_bearer_) {
    GLN_ASSIGN_OR_RETURN(join.bearer, bearer_token(options_));
  } else {
    join.proof = proto::make_proof(options_.token, proto::Prover::kMember, challenge_, nonce_, join.identity);
  }
  return join;
}

absl::StatusOr<control::Welcome> Introduction::check(const control::Admission& admission) const {
  control::Welcome welcome = admission.welcome;
  const std::string where = options_.coordinator.to_string();
  const std::string& secret = admission.secret;
  if (shows_bearer_ && options_.identity.role == control::Role::kObserver)
    return welcome;  // it opens no data connections
  if (shows_bearer_) {
    if (secret.size() != welcome.secret.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the coordinator at ", where, " sent a secret of ", secret.size(),
                                                     " bytes; expected ", welcome.secret.size()));
    }
    std::copy(secret.begin(), secret.end(), welcome.secret.begin());
    return welcome;
  }
  const std::string& nonce = admission.job_nonce;
  if (!proto::check_proof(admission.proof, options_.token, proto::Prover::kCoordinator, challenge_, nonce_, nonce)) {
    return absl::PermissionDeniedError(
        absl::StrCat("the server at ", where, " does not know this job's token; check the coordinator's address"));
  }
  welcome.secret = wire::derive_secret(options_.token, options_.identity.job,
                                       ConstBytes(reinterpret_cast<const std::byte*>(nonce.data()), nonce.size()));
  return welcome;
}

}  // namespace gleaner::member
