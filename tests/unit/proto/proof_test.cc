#include "common/proto/proof.h"

#include <gtest/gtest.h>

#include <optional>

namespace gleaner::proto {
namespace {

const std::string kOurs(kNonceBytes, 'o'), kTheirs(kNonceBytes, 't');

TEST(Proof, IsBoundToTokenRoleNoncesAndStatement) {
  const std::string proof = make_proof("token", Prover::kMember, kOurs, kTheirs, "worker 1");
  EXPECT_EQ(proof.size(), 32u);
  EXPECT_TRUE(check_proof(proof, "token", Prover::kMember, kOurs, kTheirs, "worker 1"));
  EXPECT_FALSE(check_proof(proof, "other", Prover::kMember, kOurs, kTheirs, "worker 1"));
  EXPECT_FALSE(check_proof(proof, "token", Prover::kCoordinator, kOurs, kTheirs, "worker 1"));
  EXPECT_FALSE(check_proof(proof, "token", Prover::kMember, kTheirs, kOurs, "worker 1"));
  EXPECT_FALSE(check_proof(proof, "token", Prover::kMember, kOurs, kOurs, "worker 1"));
  EXPECT_FALSE(check_proof(proof, "token", Prover::kMember, kOurs, kTheirs, "worker 2"));
  EXPECT_FALSE(check_proof(proof.substr(0, 31), "token", Prover::kMember, kOurs, kTheirs, "worker 1"));
  EXPECT_FALSE(check_proof("", "token", Prover::kMember, kOurs, kTheirs, "worker 1"));
}

TEST(Proof, NoncesHaveOneLength) {
  // Otherwise bytes of a longer field could count for the next field.
  const std::string proof = make_proof("token", Prover::kMember, kOurs, "short", "x");
  EXPECT_FALSE(check_proof(proof, "token", Prover::kMember, kOurs, "short", "x"));
}

TEST(Proof, NoLabelBeginsWithAnother) {
  const auto proof_of = [](Prover prover) { return make_proof("token", prover, kOurs, kTheirs, ""); };
  const Prover provers[] = {Prover::kMember, Prover::kCoordinator, Prover::kInviter, Prover::kWaitingSummer};
  for (const Prover one : provers) {
    for (const Prover other : provers) {
      EXPECT_EQ(check_proof(proof_of(one), "token", other, kOurs, kTheirs, ""), one == other);
    }
  }
}

TEST(JobToken, IsFoundByItsNonce) {
  const std::string token = make_job_token("shared", kOurs);
  EXPECT_EQ(token.size(), 128u);
  EXPECT_EQ(nonce_of_job_token("shared", token), kOurs);
  EXPECT_NE(make_job_token("shared", kTheirs), token);
}

TEST(JobToken, OthersHaveNoNonce) {
  const std::string token = make_job_token("shared", kOurs);
  EXPECT_EQ(nonce_of_job_token("other", token), std::nullopt);
  EXPECT_EQ(nonce_of_job_token("shared", ""), std::nullopt);
  EXPECT_EQ(nonce_of_job_token("shared", token.substr(0, 127)), std::nullopt);
  EXPECT_EQ(nonce_of_job_token("shared", token + "0"), std::nullopt);
  EXPECT_EQ(nonce_of_job_token("shared", std::string(128, 'x')), std::nullopt);
}

}  // namespace
}  // namespace gleaner::proto
