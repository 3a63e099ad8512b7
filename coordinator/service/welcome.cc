#include "coordinator/service/welcome.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/proto/proof.h"
#include "common/wire/handshake.h"

namespace gleaner::coordinator {
namespace {

std::string round_secret(const Service::JobOptions& options, const std::string& nonce) {
  const wire::Secret secret =
      wire::derive_secret(options.data_secret, options.options.job,
                          ConstBytes(reinterpret_cast<const std::byte*>(nonce.data()), nonce.size()));
  return {secret.begin(), secret.end()};
}

}  // namespace

control::Admission welcome_message(const Service::JobOptions& job, const std::string& nonce, const Rounds& rounds,
                                   const Nonces& nonces, Welcome welcome) {
  const bool elastic = job.options.is_elastic();
  welcome.workers = rounds.core().roster().ranks() / job.options.local_ranks;
  welcome.local_ranks = job.options.local_ranks;
  welcome.elastic = elastic;
  welcome.deadline = job.options.deadline;
  control::Admission admission;
  // Members derive the secret of the data connections from this nonce. The secret has to stay the same under the next
  // coordinator, so the session serves as nonce. Each round has a nonce of its own, so no member of one round has the
  // secret of another.
  admission.job_nonce = elastic                   ? absl::StrCat(nonce, "/", rounds.number())
                        : welcome.session.empty() ? nonce
                                                  : welcome.session;
  admission.welcome = std::move(welcome);
  if (job.token.empty()) {
    admission.secret = elastic ? round_secret(job, admission.job_nonce) : job.data_secret;
  } else {
    admission.proof = proto::make_proof(job.token, proto::Prover::kCoordinator, nonces.coordinator, nonces.member,
                                        admission.job_nonce);
  }
  return admission;
}

}  // namespace gleaner::coordinator
