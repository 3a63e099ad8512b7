// Tests of how local ranks find each other, and of their authentication.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "comm-lib/local/channel.h"
#include "comm-lib/local/rendezvous.h"
#include "tests/jumping_clock.h"
#include "tests/unit/local/ranks.h"

namespace gleaner::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string message_of(const TestRank& rank) {
  return rank.failed.has_value() ? std::string(rank.failed->message()) : "has not failed";
}

local::Message message_of(local::MessageType type) {
  local::Message message;
  message.type = type;
  return message;
}

struct Deaf : local::Events {
  void on_connected() override {}
  void on_reduced(uint32_t, ReduceOp, MutableBytes, MutableBytes) override {}
  void on_done(uint32_t, const absl::Status&) override {}
  void on_failed(const absl::Status&) override {}
};

// A leader without other ranks. Tests connect to it.
struct LonelyLeader {
  explicit LonelyLeader(uint32_t size = 2) : options(options_of(0, size)) {
    options.secret = fresh_secret();
    leader = std::make_unique<TestRank>(options, env);
  }

  local::Channel connect() const {
    auto socket = local::connect_to(local::socket_name(options));
    EXPECT_TRUE(socket.ok() && socket->has_value());
    return local::Channel(**std::move(socket));
  }

  // Sends a message and returns the leader's answer as text.
  std::string answer_to(local::Channel& channel, local::Message message, ConstBytes payload) const {
    channel.queue(message, payload);
    channel.flush();
    while (true) {
      leader->turn(1);
      local::Channel::Packet packet;
      if (channel.receive(packet) != local::Channel::Receipt::kPacket) continue;
      ConstBytes text;
      local::Message answer;
      EXPECT_TRUE(*local::PacketReader(packet.bytes).next(answer, text));
      if (answer.type != local::MessageType::kFail) return std::string(local::name_of(answer.type));
      return std::string(local::status_of(answer, text).ToString());
    }
  }

  local::HelloPayload hello(uint32_t rank, uint32_t size) const {
    local::Options other = options;
    other.local_rank = rank;
    other.local_size = size;
    return local::hello_of(other);
  }

  // Lets the time pass in which other ranks can join.
  void time_out() {
    clock.jump(options.timeout);
    while (!leader->failed) leader->turn(5);
  }

  JumpingClock clock{test_env().clock};
  const Env env{&clock, test_env().random, test_env().log};
  local::Options options;
  std::unique_ptr<TestRank> leader;
};

TEST(GroupJoining, AnyOrderOfArrival) {
  for (const std::vector<uint32_t>& order : std::vector<std::vector<uint32_t>>{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}}) {
    Ranks ranks(0);
    for (uint32_t rank : order) {
      ranks.open(rank, 3);
      for (int i = 0; i < 5; ++i) ranks.turn();
    }
    EXPECT_TRUE(ranks.connect());
  }
}

TEST(GroupJoining, RejectsOptionsOutOfRange) {
  const auto create = [](uint32_t rank, uint32_t size) {
    Deaf events;
    return local::Group::create(test_env(), options_of(rank, size), test_kernels(), &events).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(create(0, 1)));
  EXPECT_TRUE(absl::IsInvalidArgument(create(0, 65)));
  EXPECT_TRUE(absl::IsInvalidArgument(create(2, 2)));
}

TEST(GroupJoining, OneLeaderPerWorker) {
  LonelyLeader first;
  Deaf events;
  EXPECT_TRUE(absl::IsAlreadyExists(local::Group::create(test_env(), first.options, test_kernels(), &events).status()));
  local::Options elsewhere = first.options;
  elsewhere.worker += 1;
  EXPECT_TRUE(local::Group::create(test_env(), elsewhere, test_kernels(), &events).ok());
}

TEST(GroupJoining, TheLeaderNamesMissingRanks) {
  LonelyLeader lonely(4);
  local::Options options = lonely.options;
  options.local_rank = 2;
  TestRank second(options);
  const auto turn = [&] {
    lonely.leader->turn(1);
    second.turn(1);
  };
  for (int i = 0; i < 20; ++i) turn();  // more than the messages between the two
  lonely.clock.jump(lonely.options.timeout);
  while (!second.failed) turn();
  ASSERT_TRUE(lonely.leader->failed);
  EXPECT_TRUE(absl::IsDeadlineExceeded(*lonely.leader->failed));
  EXPECT_THAT(message_of(*lonely.leader), AllOf(HasSubstr("local ranks 1, 3 of worker 2"), HasSubstr("5m")));
  EXPECT_TRUE(absl::IsDeadlineExceeded(*second.failed));
  EXPECT_EQ(message_of(second), message_of(*lonely.leader));
}

TEST(GroupJoining, ARankMissesTheLeader) {
  local::Options options = options_of(1, 2);
  options.secret = fresh_secret();
  options.timeout = absl::Milliseconds(50);
  TestRank rank(options);
  while (!rank.failed) rank.turn(5);
  ASSERT_TRUE(rank.failed);
  EXPECT_TRUE(absl::IsDeadlineExceeded(*rank.failed));
  EXPECT_THAT(message_of(rank), HasSubstr("local rank 0 of worker 2"));
}

TEST(GroupJoining, TwoProcessesWithOneLocalRank) {
  LonelyLeader lonely(3);
  local::Channel first = lonely.connect();
  local::Channel second = lonely.connect();
  const auto hello = lonely.hello(1, 3);
  first.queue(message_of(local::MessageType::kHello), local::payload_of(hello));
  first.flush();
  for (int i = 0; i < 5; ++i) lonely.leader->turn(1);
  EXPECT_THAT(lonely.answer_to(second, message_of(local::MessageType::kHello), local::payload_of(hello)),
              AllOf(HasSubstr("ALREADY_EXISTS"), HasSubstr("local rank 1"), HasSubstr("GLEANER_LOCAL_RANK")));
  EXPECT_FALSE(lonely.leader->failed);
}

TEST(GroupJoining, AWrongSecretIsRefusedAndOtherRanksStillJoin) {
  LonelyLeader lonely;
  local::Channel impostor = lonely.connect();
  auto hello = lonely.hello(1, 2);
  hello.proof[31] ^= 1;
  EXPECT_THAT(lonely.answer_to(impostor, message_of(local::MessageType::kHello), local::payload_of(hello)),
              AllOf(HasSubstr("PERMISSION_DENIED"), HasSubstr("secret")));
  EXPECT_FALSE(lonely.leader->failed);
  local::Options options = lonely.options;
  options.local_rank = 1;
  TestRank right(options);
  while (!right.connected) {
    lonely.leader->turn(1);
    right.turn(1);
  }
  EXPECT_TRUE(right.connected);
  EXPECT_TRUE(lonely.leader->connected);
}

TEST(GroupJoining, AProofForAnotherWorkerOrJobIsInvalid) {
  LonelyLeader lonely;
  for (const bool other_worker : {false, true}) {
    local::Options other = lonely.options;
    other.job += other_worker ? 0 : 1;
    other.worker += other_worker ? 1 : 0;
    other.local_rank = 1;
    local::Channel channel = lonely.connect();
    EXPECT_THAT(
        lonely.answer_to(channel, message_of(local::MessageType::kHello), local::payload_of(local::hello_of(other))),
        HasSubstr("PERMISSION_DENIED"));
  }
}

TEST(GroupJoining, ADifferentLocalSizeEndsTheGroup) {
  LonelyLeader lonely(3);
  local::Channel other = lonely.connect();
  EXPECT_THAT(lonely.answer_to(other, message_of(local::MessageType::kHello), local::payload_of(lonely.hello(1, 2))),
              AllOf(HasSubstr("INVALID_ARGUMENT"), HasSubstr("local size 2"), HasSubstr("with 3")));
  lonely.time_out();
  EXPECT_TRUE(absl::IsInvalidArgument(*lonely.leader->failed)) << *lonely.leader->failed;
}

TEST(GroupJoining, AnotherVersionGetsAnErrorThatNamesBothVersions) {
  LonelyLeader lonely;
  local::Channel other = lonely.connect();
  local::Message message = message_of(local::MessageType::kHello);
  message.version = 9;
  EXPECT_THAT(lonely.answer_to(other, message, local::payload_of(lonely.hello(1, 2))),
              AllOf(HasSubstr("version 9"), HasSubstr("version 3")));
  lonely.time_out();
  EXPECT_THAT(message_of(*lonely.leader), AllOf(HasSubstr("local rank 1 of worker 2"), HasSubstr("version 9")));
}

TEST(GroupJoining, GarbageIsRefused) {
  LonelyLeader lonely;
  const auto send = [&](size_t bytes) {
    auto socket = local::connect_to(local::socket_name(lonely.options));
    ASSERT_TRUE(socket.ok() && socket->has_value());
    const std::vector<char> garbage(bytes, 'x');
    EXPECT_EQ(::send((*socket)->get(), garbage.data(), garbage.size(), 0), static_cast<ssize_t>(bytes));
    for (int i = 0; i < 5; ++i) lonely.leader->turn(1);
    char answer[1024];
    EXPECT_GT(::recv((*socket)->get(), answer, sizeof(answer), MSG_DONTWAIT), 0);
    EXPECT_EQ(::recv((*socket)->get(), answer, sizeof(answer), MSG_DONTWAIT), 0) << "the connection must not be closed";
  };
  for (size_t bytes : {1, 23, 24, 80, 5000}) send(bytes);
  local::Channel early = lonely.connect();
  EXPECT_THAT(lonely.answer_to(early, message_of(local::MessageType::kReady), {}), HasSubstr("expected HELLO"));
  local::Channel brief = lonely.connect();
  EXPECT_THAT(lonely.answer_to(brief, message_of(local::MessageType::kHello), {}), HasSubstr("56 bytes"));
  EXPECT_FALSE(lonely.leader->failed);
}

// A process listens under the leader's name, but does not know the secret.
TEST(GroupJoining, AFalseLeaderIsDetected) {
  local::Options options = options_of(1, 2);
  options.secret = fresh_secret();
  auto listener = local::listen_at(local::socket_name(options));
  ASSERT_TRUE(listener.ok());
  TestRank rank(options);
  std::optional<local::Channel> channel;
  while (!rank.failed) {
    rank.turn(1);
    if (channel) continue;
    auto socket = local::accept_from(*listener);
    ASSERT_TRUE(socket.ok());
    if (!socket->has_value()) continue;
    channel.emplace(**std::move(socket));
    channel->queue(message_of(local::MessageType::kWelcome), local::payload_of(local::Digest{}));
    channel->flush();
  }
  ASSERT_TRUE(rank.failed);
  EXPECT_TRUE(absl::IsPermissionDenied(*rank.failed)) << *rank.failed;
  EXPECT_FALSE(rank.connected);
}

TEST(GroupJoining, NamesAndProofsDoNotRevealTheSecret) {
  local::Options options = options_of(1, 2);
  options.secret = fresh_secret();
  local::Options other = options;
  other.secret[0] ^= 1;
  EXPECT_NE(local::socket_name(options), local::socket_name(other));
  EXPECT_NE(local::hello_of(options).proof, local::hello_of(other).proof);
  EXPECT_NE(local::hello_of(options).proof, local::welcome_of(options, 1));
  EXPECT_THAT(local::socket_name(options), Not(HasSubstr(std::string(options.secret.begin(), options.secret.end()))));
}

}  // namespace
}  // namespace gleaner::testing
