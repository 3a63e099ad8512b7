// The part of codec.h that encodes and decodes the handshake.
#include "common/control/codec.h"

namespace gleaner::control {
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

Role decode(v1::Role role) {
  if (role == v1::ROLE_SUMMER) return Role::kSummer;
  return role == v1::ROLE_OBSERVER ? Role::kObserver : Role::kWorker;
}

}  // namespace

v1::CoordinatorMessage encode(const Challenge& challenge) {
  v1::CoordinatorMessage message;
  message.mutable_challenge()->set_protocol(challenge.protocol);
  message.mutable_challenge()->set_nonce(challenge.nonce);
  message.mutable_challenge()->set_authentication(challenge.wants_bearer ? v1::AUTHENTICATION_BEARER
                                                                         : v1::AUTHENTICATION_PROOF);
  return message;
}

Challenge decode(const v1::Challenge& message) {
  return {message.protocol(), message.nonce(), message.authentication() == v1::AUTHENTICATION_BEARER};
}

v1::MemberMessage encode(const Join& join) {
  v1::MemberMessage message;
  v1::Join* const encoded = message.mutable_join();
  encoded->set_protocol(join.protocol);
  encoded->set_identity(join.identity);
  encoded->set_nonce(join.nonce);
  encoded->set_proof(join.proof);
  encoded->set_bearer(join.bearer);
  if (!join.resume.has_value()) return message;
  v1::Resume* const resume = encoded->mutable_resume();
  resume->set_session(join.resume->session);
  resume->set_committed(join.resume->committed);
  resume->set_prepared(join.resume->prepared);
  resume->set_plan_digest(join.resume->plan_digest);
  resume->set_member(join.resume->member);
  resume->set_term(join.resume->term);
  return message;
}

Join decode(const v1::Join& message) {
  Join join{message.protocol(), message.identity(), message.nonce(), message.proof(), message.bearer(), {}};
  if (!message.has_resume()) return join;
  const v1::Resume& resume = message.resume();
  join.resume = Resume{resume.session(),     resume.committed(), resume.prepared(),
                       resume.plan_digest(), resume.member(),    resume.term()};
  return join;
}

v1::CoordinatorMessage encode(const Admission& admission) {
  v1::CoordinatorMessage message;
  v1::Welcome* const welcome = message.mutable_welcome();
  welcome->set_member(admission.welcome.member);
  welcome->set_workers(admission.welcome.workers);
  welcome->set_local_ranks(admission.welcome.local_ranks);
  welcome->set_summers(admission.welcome.summers);
  welcome->set_elastic(admission.welcome.elastic);
  welcome->set_deadline_seconds(absl::ToDoubleSeconds(admission.welcome.deadline));
  welcome->set_session(admission.welcome.session);
  welcome->set_term(admission.welcome.term);
  welcome->set_job_nonce(admission.job_nonce);
  welcome->set_proof(admission.proof);
  welcome->set_secret(admission.secret);
  return message;
}

Admission decode(const v1::Welcome& message) {
  Admission admission;
  admission.welcome.member = message.member();
  admission.welcome.workers = message.workers();
  admission.welcome.local_ranks = message.local_ranks();
  admission.welcome.summers = message.summers();
  admission.welcome.elastic = message.elastic();
  admission.welcome.deadline = absl::Seconds(message.deadline_seconds());
  admission.welcome.session = message.session();
  admission.welcome.term = message.term();
  admission.job_nonce = message.job_nonce();
  admission.proof = message.proof();
  admission.secret = message.secret();
  return admission;
}

std::string serialize(const Identity& identity) {
  v1::Identity message;
  message.set_job(identity.job);
  message.set_role(encode(identity.role));
  if (identity.index.has_value()) message.set_index(*identity.index);
  message.set_local_rank(identity.local_rank);
  message.set_local_size(identity.local_size);
  message.set_address(identity.address);
  message.set_bits_per_second(identity.bits_per_second);
  message.set_network(identity.network);
  message.set_reads_summary(identity.reads_summary);
  for (const std::string& endpoint : identity.endpoints) message.add_endpoints(endpoint);
  return message.SerializeAsString();
}

absl::StatusOr<Identity> parse_identity(const std::string& bytes) {
  v1::Identity message;
  if (!message.ParseFromString(bytes)) return absl::InvalidArgumentError("the member's identity can't be read");
  Identity identity;
  identity.role = decode(message.role());
  if (message.has_index()) identity.index = message.index();
  identity.local_rank = message.local_rank();
  identity.local_size = message.local_size();
  identity.address = message.address();
  identity.bits_per_second = message.bits_per_second();
  identity.endpoints = {message.endpoints().begin(), message.endpoints().end()};
  identity.network = message.network();
  identity.reads_summary = message.reads_summary();
  identity.job = message.job();
  return identity;
}

}  // namespace gleaner::control
