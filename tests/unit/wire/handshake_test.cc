#include "common/wire/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace gleaner::wire {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kJob = 42;
constexpr uint64_t kTwin = 43;  // another job with the same secret

struct Jobs : JobSecrets {
  Secret secret{1, 2, 3};
  const Secret* find(uint64_t job) const override { return job == kJob || job == kTwin ? &secret : nullptr; }
};

absl::StatusOr<std::vector<HandshakeFrame>> give(ServerHandshake& server, const HandshakeFrame& frame) {
  return server.on_frame(frame.header, frame.payload);
}
absl::StatusOr<std::vector<HandshakeFrame>> give(ClientHandshake& client, const HandshakeFrame& frame) {
  return client.on_frame(frame.header, frame.payload);
}

class Handshake : public ::testing::Test {
 protected:
  Jobs jobs_;
  ClientHandshake client_{kJob, 5, jobs_.secret, Nonce{10}};
  ServerHandshake server_{jobs_, Nonce{20}};
};

TEST_F(Handshake, BothSidesEndKnowingEachOther) {
  const auto challenge = give(server_, client_.hello());
  ASSERT_TRUE(challenge.ok());
  const auto proof = give(client_, challenge->at(0));
  ASSERT_TRUE(proof.ok());
  EXPECT_FALSE(server_.done());
  const auto welcome = give(server_, proof->at(0));
  ASSERT_TRUE(welcome.ok());
  EXPECT_TRUE(server_.done());
  EXPECT_EQ(server_.job(), kJob);
  EXPECT_EQ(server_.member(), 5u);
  EXPECT_FALSE(client_.done());
  EXPECT_TRUE(give(client_, welcome->at(0)).ok());
  EXPECT_TRUE(client_.done());
}

TEST_F(Handshake, NoFrameContainsTheSecret) {
  const auto challenge = give(server_, client_.hello());
  const auto proof = give(client_, challenge->at(0));
  const auto secret = std::as_bytes(std::span(jobs_.secret));
  for (const auto* frame : {&challenge->at(0), &proof->at(0)}) {
    EXPECT_EQ(std::search(frame->payload.begin(), frame->payload.end(), secret.begin(), secret.end()),
              frame->payload.end());
  }
}

TEST_F(Handshake, AClientWithTheWrongSecretIsRefused) {
  ClientHandshake stranger(kJob, 5, Secret{9}, Nonce{10});
  const auto challenge = give(server_, stranger.hello());
  const auto proof = give(stranger, challenge->at(0));
  const absl::Status refused = give(server_, proof->at(0)).status();
  EXPECT_TRUE(absl::IsPermissionDenied(refused));
  EXPECT_FALSE(server_.done());
  const absl::Status told = give(stranger, ServerHandshake::reject(refused)).status();
  EXPECT_TRUE(absl::IsPermissionDenied(told));
  EXPECT_THAT(std::string(told.message()), HasSubstr("wrong secret"));
}

TEST_F(Handshake, AServerWithTheWrongSecretIsDetected) {
  Jobs others;
  others.secret = Secret{9};
  ServerHandshake right(jobs_, Nonce{20});
  const auto proof = give(client_, give(right, client_.hello())->at(0));
  ASSERT_TRUE(give(right, proof->at(0)).ok());
  // A server without the secret can only invent a WELCOME.
  HandshakeFrame made_up = client_.hello();
  made_up.header.type = FrameType::kWelcome;
  EXPECT_TRUE(absl::IsPermissionDenied(give(client_, made_up).status()));
  EXPECT_FALSE(client_.done());
}

TEST_F(Handshake, AProofOfAnotherConnectionIsRefused) {
  const auto proof = give(client_, give(server_, client_.hello())->at(0));
  ServerHandshake later(jobs_, Nonce{21});
  ASSERT_TRUE(give(later, client_.hello()).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(give(later, proof->at(0)).status()));
}

TEST_F(Handshake, AReflectedProofIsRefused) {
  const auto proof = give(client_, give(server_, client_.hello())->at(0));
  HandshakeFrame reflected = proof->at(0);
  reflected.header.type = FrameType::kWelcome;
  EXPECT_TRUE(absl::IsPermissionDenied(give(client_, reflected).status()));
}

TEST_F(Handshake, AWelcomeOfAnotherConnectionIsRefused) {
  const auto challenge = give(server_, client_.hello());
  const auto welcome = give(server_, give(client_, challenge->at(0))->at(0));
  ClientHandshake later(kJob, 5, jobs_.secret, Nonce{11});
  ASSERT_TRUE(give(later, challenge->at(0)).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(give(later, welcome->at(0)).status()));
  EXPECT_FALSE(later.done());
}

TEST_F(Handshake, JobAndMemberCannotBeChangedInFlight) {
  for (const bool job : {true, false}) {
    ClientHandshake client(kJob, 5, jobs_.secret, Nonce{10});
    ServerHandshake server(jobs_, Nonce{20});
    const auto change = [job](HandshakeFrame frame) {
      if (job) frame.header.job = kTwin;
      if (!job) frame.header.sender = 6;
      return frame;
    };
    const auto proof = give(client, give(server, change(client.hello()))->at(0));
    EXPECT_TRUE(absl::IsPermissionDenied(give(server, change(proof->at(0))).status()));
  }
}

TEST_F(Handshake, AProofForAnotherMemberIsRefused) {
  const auto proof = give(client_, give(server_, client_.hello())->at(0));
  HandshakeFrame changed = proof->at(0);
  changed.header.sender = 6;
  EXPECT_TRUE(absl::IsPermissionDenied(give(server_, changed).status()));
}

TEST_F(Handshake, AnUnknownJobIsAnsweredLikeAWrongSecret) {
  ClientHandshake client(kJob + 5, 5, jobs_.secret, Nonce{10});
  const auto proof = give(client, give(server_, client.hello())->at(0));
  EXPECT_TRUE(absl::IsPermissionDenied(give(server_, proof->at(0)).status()));
  // There is no secret that opens a job which does not exist.
  ClientHandshake guess(kJob + 5, 5, Secret{}, Nonce{10});
  ServerHandshake later(jobs_, Nonce{20});
  const auto guessed = give(guess, give(later, guess.hello())->at(0));
  EXPECT_TRUE(absl::IsPermissionDenied(give(later, guessed->at(0)).status()));
  EXPECT_FALSE(later.done());
}

TEST_F(Handshake, FramesOutOfTurnOrCutShortAreErrors) {
  HandshakeFrame early = client_.hello();
  early.header.type = FrameType::kProof;
  EXPECT_TRUE(absl::IsInvalidArgument(give(server_, early).status()));
  ServerHandshake greeted(jobs_, Nonce{20});
  ASSERT_TRUE(give(greeted, client_.hello()).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(give(greeted, client_.hello()).status())) << "a second HELLO is an error";
  HandshakeFrame cut = client_.hello();
  cut.payload.resize(31);
  EXPECT_TRUE(absl::IsInvalidArgument(give(server_, cut).status()));
  HandshakeFrame welcome = client_.hello();
  welcome.header.type = FrameType::kWelcome;
  EXPECT_TRUE(absl::IsInvalidArgument(give(client_, welcome).status()));
}

TEST(DeriveSecret, DependsOnTokenJobAndNonce) {
  const Nonce nonce{1};
  const auto bytes = std::as_bytes(std::span(nonce));
  const Secret secret = derive_secret("token", "job", bytes);
  EXPECT_EQ(secret, derive_secret("token", "job", bytes));
  EXPECT_NE(secret, derive_secret("tokem", "job", bytes));
  EXPECT_NE(secret, derive_secret("token", "jobs", bytes));
  const Nonce other{2};
  EXPECT_NE(secret, derive_secret("token", "job", std::as_bytes(std::span(other))));
}

}  // namespace
}  // namespace gleaner::wire
