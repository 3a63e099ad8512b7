#include "common/member/introduction.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/member/credentials.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"

namespace gleaner::member {
namespace {

v1::Role encode(Role role) {
  switch (role) {
    case Role::kWorker:
      return v1::ROLE_WORKER;
    case Role::kSummer:
      return v1::ROLE_SUMMER;
    case Role::kObserver:
      return v1::ROLE_OBSERVER;
  }
  return v1::ROLE_UNSPECIFIED;
}

v1::Identity identity_of(const JoinOptions& options) {
  v1::Identity identity;
  identity.set_job(options.job);
  identity.set_role(encode(options.role));
  if (options.index.has_value()) identity.set_index(*options.index);
  identity.set_local_rank(options.local_rank);
  identity.set_local_size(options.local_size);
  identity.set_address(options.address);
  identity.set_bits_per_second(options.bits_per_second);
  identity.set_network(options.network);
  for (const std::string& endpoint : options.endpoints) identity.add_endpoints(endpoint);
  return identity;
}

}  // namespace

absl::Status Introduction::answer(v1::Join* join) {
  const v1::Challenge& challenge = unanswered_;
  if (challenge.protocol() != proto::kProtocol) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator at ", options_.coordinator.to_string(), " speaks protocol ", challenge.protocol(),
                     ", this member protocol ", proto::kProtocol, "; install the same version of gleaner on both"));
  }
  nonce_.resize(proto::kNonceBytes);
  GLN_RETURN_IF_ERROR(random_->fill({reinterpret_cast<uint8_t*>(nonce_.data()), nonce_.size()}));
  challenge_ = challenge.nonce();
  shows_bearer_ = challenge.authentication() == v1::AUTHENTICATION_BEARER;
  join->set_protocol(proto::kProtocol);
  identity_of(options_).SerializeToString(join->mutable_identity());
  join->set_nonce(nonce_);
  if (shows_bearer_) {
    GLN_ASSIGN_OR_RETURN(*join->mutable_bearer(), bearer_token(options_));
  } else {
    join->set_proof(proto::make_proof(options_.token, proto::Prover::kMember, challenge_, nonce_, join->identity()));
  }
  return absl::OkStatus();
}

absl::Status Introduction::check(const v1::Welcome& welcome, Welcome* decoded) const {
  decoded->member = welcome.member();
  decoded->workers = welcome.workers();
  decoded->local_ranks = welcome.local_ranks();
  decoded->summers = welcome.summers();
  decoded->elastic = welcome.elastic();
  decoded->deadline = absl::Seconds(welcome.deadline_seconds());
  const std::string where = options_.coordinator.to_string();
  if (shows_bearer_ && options_.role == Role::kObserver)
    return absl::OkStatus();  // an observer opens no data connections
  if (shows_bearer_) {
    if (welcome.secret().size() != decoded->secret.size()) {
      return absl::InvalidArgumentError(absl::StrCat("the coordinator at ", where, " sent a secret of ",
                                                     welcome.secret().size(), " bytes; expected ",
                                                     decoded->secret.size()));
    }
    std::copy(welcome.secret().begin(), welcome.secret().end(), decoded->secret.begin());
    return absl::OkStatus();
  }
  if (!proto::check_proof(welcome.proof(), options_.token, proto::Prover::kCoordinator, challenge_, nonce_,
                          welcome.job_nonce())) {
    return absl::PermissionDeniedError(
        absl::StrCat("the server at ", where, " does not know this job's token; check the coordinator's address"));
  }
  decoded->secret = wire::derive_secret(
      options_.token, options_.job,
      ConstBytes(reinterpret_cast<const std::byte*>(welcome.job_nonce().data()), welcome.job_nonce().size()));
  return absl::OkStatus();
}

}  // namespace gleaner::member
