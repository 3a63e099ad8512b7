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

  control::Join answer(Introduction& introduction) {
    introduction.on_challenge({proto::kProtocol, std::string(proto::kNonceBytes, 'c')});
    return *introduction.answer();
  }
  // Returns the admission by a coordinator that knows the token and was shown `nonce`.
  control::Admission admission(const std::string& nonce) {
    control::Admission admission;
    admission.job_nonce = "job";
    admission.proof = proto::make_proof(options_.token, proto::Prover::kCoordinator,
                                        std::string(proto::kNonceBytes, 'c'), nonce, "job");
    return admission;
  }

  SystemEnv system_;
  JoinOptions options_;
};

TEST_F(IntroductionTest, EveryConnectionHasANonceOfItsOwn) {
  Introduction introduction(options_, system_.env().random);
  const control::Join first = answer(introduction);
  const control::Join second = answer(introduction);
  EXPECT_EQ(first.nonce.size(), proto::kNonceBytes);
  EXPECT_NE(first.nonce, second.nonce);
  EXPECT_NE(first.proof, second.proof);
}

TEST_F(IntroductionTest, AWelcomeOfAnEarlierConnectionProvesNothing) {
  Introduction introduction(options_, system_.env().random);
  const control::Join first = answer(introduction);
  const control::Join second = answer(introduction);
  EXPECT_TRUE(absl::IsPermissionDenied(introduction.check(admission(first.nonce)).status()));
  EXPECT_EQ(introduction.check(admission(second.nonce)).status(), absl::OkStatus());
}

}  // namespace
}  // namespace gleaner::member
