// Tests of the invitation, and of the handshake in which both ends prove that they know the summer's token.
#include "common/invitation/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/proto/proof.h"

namespace gleaner::invitation {
namespace {

using testing::HasSubstr;

const std::string kSummerNonce(proto::kNonceBytes, 's'), kInviterNonce(proto::kNonceBytes, 'i');

Invitation sample() {
  return {"digits", {"10.0.0.1", 7000}, "network", "spare0", std::string(proto::kNonceBytes, 't')};
}

TEST(Invitation, RoundTrips) {
  const auto parsed = parse_invitation(serialize(sample()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, sample());
}

TEST(Invitation, FieldsOutOfRangeAreRefused) {
  const std::pair<const char*, std::function<void(Invitation&)>> mistakes[] = {
      {"name", [](Invitation& invitation) { invitation.job.clear(); }},
      {"port 0", [](Invitation& invitation) { invitation.coordinator.port = 0; }},
      {"not an address", [](Invitation& invitation) { invitation.coordinator.host = "a b"; }},
      {"not an address", [](Invitation& invitation) { invitation.summer = ""; }},
      {"not an address", [](Invitation& invitation) { invitation.summer = "a\nb"; }},
      {"nonce of 31 bytes", [](Invitation& invitation) { invitation.token_nonce.pop_back(); }},
  };
  for (const auto& [message, make] : mistakes) {
    Invitation invitation = sample();
    make(invitation);
    const absl::Status status = parse_invitation(serialize(invitation)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(message));
  }
}

TEST(Invitation, ChangedBytesDoNoHarm) {
  const std::string bytes = serialize(sample());
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ (1 << bit));
      const auto parsed = parse_invitation(changed);
      EXPECT_TRUE(!parsed.ok() || parsed->token_nonce.size() == proto::kNonceBytes);
    }
    parse_invitation(bytes.substr(0, i)).IgnoreError();
  }
}

TEST(Invitation, AnUnspecifiedHostIsThatOfTheInviter) {
  Invitation invitation = sample();
  EXPECT_EQ(*coordinator_of(invitation, "ipv4:10.0.0.7:51234", "other"), (Address{"10.0.0.1", 7000}));
  for (const char* host : {"0.0.0.0", "::"}) {
    invitation.coordinator.host = host;
    EXPECT_EQ(*coordinator_of(invitation, "ipv4:10.0.0.7:51234", "other"), (Address{"10.0.0.7", 7000}));
    EXPECT_EQ(*coordinator_of(invitation, "ipv6:%5B2001:db8::1%5D:51234", ""), (Address{"2001:db8::1", 7000}));
    EXPECT_EQ(coordinator_of(invitation, "unix:/tmp/x", "").status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(Invitation, ALoopbackAddressIsOfTheSameHost) {
  Invitation invitation = sample();
  invitation.coordinator.host = "127.0.0.1";
  EXPECT_TRUE(coordinator_of(invitation, "ipv4:127.0.0.1:51234", "network").ok());
  EXPECT_TRUE(coordinator_of(invitation, "ipv4:127.0.0.1:51234", "").ok()) << "not known";
  const absl::Status status = coordinator_of(invitation, "ipv4:10.0.0.7:51234", "other").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("--listen"));
}

TEST(Handshake, BothEndsProveThatTheyKnowTheToken) {
  InviterHandshake inviter(sample(), "token", kInviterNonce);
  const SummerHandshake summer("token", kSummerNonce);
  const auto invite = inviter.answer(summer.challenge());
  ASSERT_TRUE(invite.ok()) << invite.status();
  const auto invitation = summer.check(*invite);
  ASSERT_TRUE(invitation.ok()) << invitation.status();
  EXPECT_EQ(*invitation, sample());
  EXPECT_TRUE(inviter.check(summer.accept(*invite)).ok());
}

TEST(Handshake, AnotherTokenIsRefusedByBothEnds) {
  InviterHandshake inviter(sample(), "token", kInviterNonce);
  const SummerHandshake summer("another token", kSummerNonce);
  const auto invite = inviter.answer(summer.challenge());
  EXPECT_EQ(summer.check(*invite).status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(inviter.check(summer.accept(*invite)).code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(inviter.check(v1::Accepted()).code(), absl::StatusCode::kPermissionDenied);
}

TEST(Handshake, ProofsCoverTheInvitationAndBothNonces) {
  InviterHandshake inviter(sample(), "token", kInviterNonce);
  const SummerHandshake summer("token", kSummerNonce);
  const v1::Invite invite = *inviter.answer(summer.challenge());
  EXPECT_EQ(SummerHandshake("token", kInviterNonce).check(invite).status().code(), absl::StatusCode::kPermissionDenied)
      << "a replay to another stream";
  v1::Invite changed = invite;
  changed.set_nonce(kSummerNonce);
  EXPECT_EQ(summer.check(changed).status().code(), absl::StatusCode::kPermissionDenied);
  changed = invite;
  Invitation other = sample();
  other.coordinator.port = 7001;
  changed.set_invitation(serialize(other));
  EXPECT_EQ(summer.check(changed).status().code(), absl::StatusCode::kPermissionDenied);
  v1::Accepted reflected;
  reflected.set_proof(invite.proof());
  EXPECT_EQ(inviter.check(reflected).code(), absl::StatusCode::kPermissionDenied);
}

TEST(Handshake, AnotherVersionIsNamed) {
  InviterHandshake inviter(sample(), "token", kInviterNonce);
  const SummerHandshake summer("token", kSummerNonce);
  v1::SummerChallenge challenge = summer.challenge();
  v1::Invite invite = *inviter.answer(challenge);
  challenge.set_protocol(challenge.protocol() + 1);
  EXPECT_EQ(inviter.answer(challenge).status().code(), absl::StatusCode::kFailedPrecondition);
  invite.set_protocol(invite.protocol() + 1);
  EXPECT_EQ(summer.check(invite).status().code(), absl::StatusCode::kFailedPrecondition);
  challenge = summer.challenge();
  challenge.set_nonce("short");
  EXPECT_EQ(inviter.answer(challenge).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gleaner::invitation
