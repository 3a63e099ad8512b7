#include "common/member/introduction.h"

#include <gtest/gtest.h>

#include "common/base/env.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"

namespace gleaner::member {
namespace {

class IntroductionTest : public testing::Test {
 protected:
  IntroductionTest() : system_({"test", LogLevel::kOff}) { options_.token = "0123456789abcdef"; }

  v1::Join answer(Introduction& introduction) {
    v1::Challenge challenge;
    challenge.set_protocol(proto::kProtocol);
    challenge.set_nonce(std::string(proto::kNonceBytes, 'c'));
    v1::Join join;
    introduction.on_challenge(challenge);
    EXPECT_EQ(introduction.answer(&join), absl::OkStatus());
    return join;
  }
  // Returns the Welcome of a coordinator that knows the token and was shown `nonce`.
  v1::Welcome welcome(const std::string& nonce) {
    v1::Welcome welcome;
    welcome.set_job_nonce("job");
    welcome.set_proof(proto::make_proof(options_.token, proto::Prover::kCoordinator,
                                        std::string(proto::kNonceBytes, 'c'), nonce, "job"));
    return welcome;
  }

  SystemEnv system_;
  JoinOptions options_;
};

TEST_F(IntroductionTest, EveryConnectionHasANonceOfItsOwn) {
  Introduction introduction(options_, system_.env().random);
  const v1::Join first = answer(introduction);
  const v1::Join second = answer(introduction);
  EXPECT_EQ(first.nonce().size(), proto::kNonceBytes);
  EXPECT_NE(first.nonce(), second.nonce());
  EXPECT_NE(first.proof(), second.proof());
}

TEST_F(IntroductionTest, AWelcomeOfAnEarlierConnectionProvesNothing) {
  Introduction introduction(options_, system_.env().random);
  const v1::Join first = answer(introduction);
  const v1::Join second = answer(introduction);
  Welcome told;
  EXPECT_TRUE(absl::IsPermissionDenied(introduction.check(welcome(first.nonce()), &told)));
  EXPECT_EQ(introduction.check(welcome(second.nonce()), &told), absl::OkStatus());
}

}  // namespace
}  // namespace gleaner::member
