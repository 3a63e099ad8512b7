#include "common/proto/proof.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace gleaner::proto
