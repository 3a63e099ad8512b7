#include <gtest/gtest.h>

#include "common/control/codec.h"

namespace gleaner::control {
namespace {

TEST(HandshakeCodec, ChallengesArriveUnchanged) {
  for (const bool wants_bearer : {false, true}) {
    const Challenge challenge{2, "nonce", wants_bearer};
    EXPECT_EQ(decode(encode(challenge).challenge()), challenge);
  }
}

TEST(HandshakeCodec, JoinsArriveUnchanged) {
  Join join{2, "identity", "nonce", "proof", "bearer", {}};
  EXPECT_EQ(decode(encode(join).join()), join);
  join.resume = Resume{"s", 4, 5, "digest", 3, 6};
  EXPECT_EQ(decode(encode(join).join()), join);
}

TEST(HandshakeCodec, AdmissionsArriveUnchangedWithoutTheDerivedSecret) {
  Admission admission;
  admission.welcome = {1, 2, "s", 3, 4, 5, true, absl::Seconds(10), {}};
  admission.job_nonce = "job nonce";
  admission.proof = "proof";
  admission.secret = "secret";
  EXPECT_EQ(decode(encode(admission).welcome()), admission);
  Admission told = admission;
  told.welcome.secret.fill(7);
  EXPECT_EQ(decode(encode(told).welcome()), admission);
}

TEST(HandshakeCodec, IdentitiesArriveUnchanged) {
  for (const Role role : {Role::kWorker, Role::kSummer, Role::kObserver}) {
    Identity identity;
    identity.role = role;
    EXPECT_EQ(*parse_identity(serialize(identity)), identity);
    identity.index = 0;
    identity.local_rank = 1;
    identity.local_size = 2;
    identity.address = "10.0.0.1:7000";
    identity.bits_per_second = 1e9;
    identity.endpoints = {"shm://a", "tcp://b"};
    identity.network = "network";
    identity.job = "job";
    identity.reads_summary = true;
    EXPECT_EQ(*parse_identity(serialize(identity)), identity);
  }
  EXPECT_TRUE(absl::IsInvalidArgument(parse_identity("\xff").status()));
}

}  // namespace
}  // namespace gleaner::control
