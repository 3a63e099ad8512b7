// The conformance suite, which runs over every transport.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "tests/conformance/rig.h"
#include "tests/jumping_clock.h"

namespace gleaner::transport {
namespace {

using ::testing::HasSubstr;

class Conformance : public ::testing::TestWithParam<TransportKind> {
 protected:
  void SetUp() override { make({}); }
  void make(const Limits& limits) {
    rig_.reset();
    rig_ = GetParam().make(env_, limits);
  }

  static wire::Header push(uint64_t step) {
    wire::Header header;
    header.type = wire::FrameType::kPush;
    header.job = kJob;
    header.sender = 3;
    header.tensor = 5;
    header.partition = 11;
    header.epoch = 2;
    header.step = step;
    return header;
  }
  static Buffer pattern(BufferPool& pool, size_t size, uint64_t seed) {
    Buffer buffer = pool.take(size);
    for (size_t i = 0; i < size; ++i) buffer.bytes()[i] = static_cast<std::byte>((i * 131 + seed * 17) >> 3);
    return buffer;
  }
  static bool same(const std::vector<std::byte>& got, const Buffer& expected) {
    return got.size() == expected.size() && std::equal(got.begin(), got.end(), expected.bytes().begin());
  }

  // Waits until a transport that writes payloads into the peer's memory knows that they are written.
  void settle(const Connection& writer) {
    if (!writer.capabilities().one_sided) return;
    EXPECT_TRUE(rig_->poll_until([&] { return writer.queued_bytes() == 0; }));
  }

  // Returns a pair of transports with a connection whose server never polls after this call.
  std::unique_ptr<Rig> silent_pair(const Limits& limits) {
    auto pair = GetParam().make(env_, limits);
    EXPECT_NE(pair->connected().first, nullptr);
    return pair;
  }

  SystemEnv system_{LogOptions{"test", LogLevel::kOff}};
  JumpingClock clock_{system_.env().clock};
  const Env env_{&clock_, system_.env().random, system_.env().log};
  BufferPool pool_;
  std::unique_ptr<Rig> rig_;
};

TEST_P(Conformance, BothEndsKnowEachOther) {
  int mine = 0;
  ASSERT_TRUE(rig_->connect(&mine).ok());
  ASSERT_TRUE(
      rig_->poll_until([&] { return !rig_->server_end.connections.empty() && !rig_->client_end.connections.empty(); }));
  const Peer& accepted = rig_->server_end.connections[0]->peer();
  EXPECT_EQ(accepted.job, kJob);
  EXPECT_EQ(accepted.member, 3u);
  EXPECT_TRUE(accepted.accepted);
  EXPECT_FALSE(rig_->client_end.connections[0]->peer().accepted);
  EXPECT_EQ(rig_->client_end.connections[0]->context, &mine);
}

TEST_P(Conformance, PayloadsOfEverySizeArriveWholeAndInOrder) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const std::vector<size_t> sizes = {0,    1,      63,     64,        65,       4095, 4096, 4097,
                                     8191, 65'536, 65'537, 1'000'000, 4u << 20, 0,    7};
  std::vector<Buffer> sent;
  for (size_t i = 0; i < sizes.size(); ++i) {
    sent.push_back(pattern(pool_, sizes[i], i));
    client->send(push(i), sent.back());
  }
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.received.size() == sizes.size(); }));
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(rig_->server_end.received[i].header.step, i);
    EXPECT_EQ(rig_->server_end.received[i].header.payload_bytes, sizes[i]);
    EXPECT_EQ(rig_->server_end.received[i].header.tensor, 5u);
    EXPECT_TRUE(same(rig_->server_end.received[i].payload, sent[i])) << sizes[i];
  }
}

TEST_P(Conformance, ThousandsOfFramesBothWaysAtOnce) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  constexpr uint64_t kFrames = 5000;
  const Buffer payload = pattern(pool_, 700, 1);
  for (uint64_t i = 0; i < kFrames; ++i) {
    client->send(push(i), payload);
    server->send(push(i), payload);
  }
  ASSERT_TRUE(rig_->poll_until(
      [&] { return rig_->server_end.received.size() == kFrames && rig_->client_end.received.size() == kFrames; }));
  for (uint64_t i = 0; i < kFrames; ++i) {
    ASSERT_EQ(rig_->server_end.received[i].header.step, i);
    ASSERT_EQ(rig_->client_end.received[i].header.step, i);
    ASSERT_TRUE(same(rig_->client_end.received[i].payload, payload));
  }
}

TEST_P(Conformance, BuffersAreReleasedOnceSent) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const Buffer payload = pattern(pool_, 3 << 20, 1);
  client->send(push(0), payload);
  EXPECT_FALSE(payload.sole_owner());
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.received.size() == 1; }));
  settle(*client);
  EXPECT_EQ(client->queued_bytes(), 0u);
  EXPECT_TRUE(payload.sole_owner());
}

TEST_P(Conformance, ABacklogIsReportedAndDrains) {
  rig_->server_end.keep_frames = false;
  size_t seen = 0;
  rig_->server_end.when_frame = [&](Connection&, const wire::Header&) { ++seen; };
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const Buffer payload = pattern(pool_, 1 << 20, 1);
  for (uint64_t i = 0; i < 64; ++i) client->send(push(i), payload);
  for (int i = 0; i < 100; ++i) rig_->client().poll(absl::ZeroDuration());
  EXPECT_GT(client->queued_bytes(), size_t{16} << 20)
      << "the peer does not read, and the kernel buffers only a few MiB";
  // On a slow machine a frame of the handshake may not be known to have left yet.
  EXPECT_LE(client->queued_bytes(), 64 * ((1 << 20) + wire::kHeaderBytes) + wire::kHeaderBytes);
  ASSERT_TRUE(rig_->poll_until([&] { return seen == 64; }));
  settle(*client);
  EXPECT_EQ(client->queued_bytes(), 0u);
}

TEST_P(Conformance, AnswersFromWithinACallback) {
  rig_->server_end.when_frame = [](Connection& connection, const wire::Header& header) { connection.send(header, {}); };
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  client->send(push(9), pattern(pool_, 100, 1));
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->client_end.received.size() == 1; }));
  EXPECT_EQ(rig_->client_end.received[0].header.step, 9u);
}

TEST_P(Conformance, AClosingReachesBothSides) {
  for (const bool from_client : {true, false}) {
    make({});
    const auto [client, server] = rig_->connected();
    ASSERT_NE(client, nullptr);
    End& closer = from_client ? rig_->client_end : rig_->server_end;
    End& other = from_client ? rig_->server_end : rig_->client_end;
    (from_client ? client : server)->close(absl::AbortedError("enough"));
    EXPECT_TRUE(closer.closed.empty()) << "close() makes no callback";
    ASSERT_TRUE(rig_->poll_until([&] { return closer.closed.size() == 1 && other.closed.size() == 1; }));
    EXPECT_EQ(closer.closed[0].message(), "enough");
    EXPECT_TRUE(absl::IsUnavailable(other.closed[0])) << other.closed[0];
    EXPECT_THAT(std::string(other.closed[0].message()), HasSubstr("closed by the peer: enough"));
  }
}

TEST_P(Conformance, FramesSentBeforeAClosingArrive) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const Buffer payload = pattern(pool_, 1000, 1);
  for (uint64_t i = 0; i < 20; ++i) client->send(push(i), payload);
  client->close(absl::OkStatus());
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.closed.size() == 1; }));
  ASSERT_EQ(rig_->server_end.received.size(), 20u);
  EXPECT_EQ(rig_->server_end.received[19].header.step, 19u);
  EXPECT_TRUE(payload.sole_owner());
  ASSERT_EQ(rig_->client_end.closed.size(), 1u);
  EXPECT_TRUE(rig_->client_end.closed[0].ok());
}

TEST_P(Conformance, NothingIsReportedBetweenCloseAndOnClosed) {
  rig_->server_end.when_frame = [](Connection& connection, const wire::Header&) {
    connection.close(absl::AbortedError("one is enough"));
  };
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  for (uint64_t i = 0; i < 20; ++i) client->send(push(i), pattern(pool_, 10, i));
  ASSERT_TRUE(
      rig_->poll_until([&] { return rig_->server_end.closed.size() == 1 && rig_->client_end.closed.size() == 1; }));
  EXPECT_EQ(rig_->server_end.received.size(), 1u);
}

TEST_P(Conformance, ClosingWithinOnHeaderIsEnough) {
  if (!GetParam().has_network) GTEST_SKIP() << "payloads are not placed in process";
  rig_->server_end.when_header = [](Connection& connection, const wire::Header&) {
    connection.close(absl::AbortedError("not now"));
  };
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  client->send(push(0), pattern(pool_, 10, 0));
  ASSERT_TRUE(
      rig_->poll_until([&] { return rig_->server_end.closed.size() == 1 && rig_->client_end.closed.size() == 1; }));
  EXPECT_EQ(rig_->server_end.closed[0].message(), "not now");
  EXPECT_TRUE(rig_->server_end.received.empty());
}

TEST_P(Conformance, CallbacksMayConnectAndCloseOthers) {
  const auto [first, first_server] = rig_->connected();
  const auto [second, second_server] = rig_->connected();
  ASSERT_NE(second, nullptr);
  rig_->client_end.when_closed = [&, victim = first](Connection&) {
    if (rig_->client_end.closed.size() == 1) victim->close(absl::AbortedError("you, too"));
    if (rig_->client_end.closed.size() != 2) return;
    EXPECT_TRUE(rig_->connect().ok());
  };
  second->close(absl::OkStatus());
  ASSERT_TRUE(rig_->poll_until(
      [&] { return rig_->server_end.closed.size() == 2 && rig_->server_end.connections.size() == 1; }));
  EXPECT_EQ(rig_->client_end.closed.size(), 2u);
}

TEST_P(Conformance, TransportsMayBeDestroyedWithFramesInFlight) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const Buffer payload = pattern(pool_, 4 << 20, 1);
  for (uint64_t i = 0; i < 8; ++i) client->send(push(i), payload);
  rig_->client().poll(absl::ZeroDuration());
  client->send(push(9), payload);
  rig_.reset();
  EXPECT_TRUE(payload.sole_owner());
}

TEST_P(Conformance, PendingReportsWorkLeftByCalls) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(rig_->poll_until([&] { return !rig_->client().pending() && !rig_->server().pending(); }));
  client->send(push(0), pattern(pool_, 10, 0));
  EXPECT_TRUE(rig_->client().pending() || rig_->server().pending());
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.received.size() == 1; }));
  client->close(absl::OkStatus());
  EXPECT_TRUE(rig_->client().pending());
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->client_end.closed.size() == 1; }));
  EXPECT_FALSE(rig_->client().pending());
}

TEST_P(Conformance, TheDescriptorIsReadableWhenFramesArrive) {
  if (rig_->server().descriptor() < 0) GTEST_SKIP() << "the transport has no descriptor";
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  client->send(push(0), pattern(pool_, 10, 0));
  rig_->client().poll(absl::ZeroDuration());
  while (rig_->server_end.received.empty()) {
    Spinner* const spinner = rig_->server().extensions().spinner;
    if (spinner == nullptr || !spinner->spin_before_wait(absl::Seconds(30))) {
      pollfd waiting{rig_->server().descriptor(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 30'000), 1);
    }
    rig_->server().poll(absl::ZeroDuration());
  }
}

TEST_P(Conformance, BothEndsReportTheTransportThatCarriesTheConnection) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(name_of(client->kind()), name_of(GetParam().kind));
  EXPECT_EQ(name_of(server->kind()), name_of(GetParam().kind));
}

// A child that the process forks, such as one of PyTorch's data loaders, holds copies of all descriptors.
TEST_P(Conformance, AClosingReachesBothSidesWhileAForkedChildLives) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::pause();
    _exit(0);
  }
  client->close(absl::OkStatus());
  const bool closed =
      rig_->poll_until([&] { return rig_->client_end.closed.size() == 1 && rig_->server_end.closed.size() == 1; });
  for (int i = 0; i < 10; ++i) rig_->poll_both();  // no event is left for the connections, which are gone
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(closed);
}

TEST_P(Conformance, SendingAfterCloseIsDropped) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const Buffer payload = pattern(pool_, 100, 1);
  client->close(absl::OkStatus());
  client->send(push(1), payload);
  ASSERT_TRUE(
      rig_->poll_until([&] { return rig_->server_end.closed.size() == 1 && rig_->client_end.closed.size() == 1; }));
  EXPECT_TRUE(rig_->server_end.received.empty());
  EXPECT_TRUE(payload.sole_owner());
}

TEST_P(Conformance, ConnectsAgain) {
  for (uint64_t i = 0; i < 3; ++i) {
    const auto [client, server] = rig_->connected();
    ASSERT_NE(client, nullptr);
    client->send(push(i), pattern(pool_, 50, i));
    ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.received.size() == i + 1; }));
    client->close(absl::OkStatus());
    ASSERT_TRUE(rig_->poll_until(
        [&] { return rig_->client_end.closed.size() == i + 1 && rig_->server_end.closed.size() == i + 1; }));
  }
}

TEST_P(Conformance, ManyConnectionsAreSeparate) {
  std::vector<Connection*> clients;
  for (int i = 0; i < 50; ++i) {
    clients.push_back(rig_->connected().first);
    ASSERT_NE(clients.back(), nullptr);
  }
  std::vector<uint64_t> steps;
  rig_->server_end.when_frame = [&](Connection&, const wire::Header& header) { steps.push_back(header.step); };
  for (uint64_t i = 0; i < clients.size(); ++i) clients[i]->send(push(i), pattern(pool_, 1000 + i, i));
  ASSERT_TRUE(rig_->poll_until([&] { return steps.size() == clients.size(); }));
  std::sort(steps.begin(), steps.end());
  for (uint64_t i = 0; i < steps.size(); ++i) EXPECT_EQ(steps[i], i);
}

TEST_P(Conformance, NoListenerIsAnError) {
  rig_->address = rig_->nobody();
  const auto connection = rig_->connect();
  absl::Status status = connection.status();
  if (connection.ok()) {
    ASSERT_TRUE(rig_->poll_until([&] { return rig_->client_end.closed.size() == 1; }));
    status = rig_->client_end.closed[0];
  }
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(rig_->address.host));
}

TEST_P(Conformance, AddressInUse) {
  const absl::Status status = rig_->client().listen(rig_->address).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status)) << status;
}

TEST_P(Conformance, AnErrorOfTheReceiverClosesOnlyThatConnection) {
  if (!GetParam().has_network) GTEST_SKIP() << "payloads are not placed in process";
  const auto [other, other_server] = rig_->connected();
  const auto [client, server] = rig_->connected();
  rig_->server_end.header_answer = absl::ResourceExhaustedError("no room");
  client->send(push(0), pattern(pool_, 100, 1));
  ASSERT_TRUE(
      rig_->poll_until([&] { return rig_->server_end.closed.size() == 1 && rig_->client_end.closed.size() == 1; }));
  EXPECT_THAT(std::string(rig_->server_end.closed[0].message()), HasSubstr("no room"));
  rig_->server_end.header_answer = absl::OkStatus();
  other->send(push(1), pattern(pool_, 100, 1));
  EXPECT_TRUE(rig_->poll_until([&] { return rig_->server_end.received.size() == 1; }));
}

TEST_P(Conformance, WakeEndsAPollFromAnotherThread) {
  if (!GetParam().has_network) GTEST_SKIP() << "polling in process never waits";
  std::thread waker([&] { rig_->client().wake(); });
  rig_->client().poll(absl::Hours(1));  // the time limit of the test is the deadline
  waker.join();
}

TEST_P(Conformance, TheWrongSecretIsRefusedWithAReason) {
  if (!GetParam().has_network) GTEST_SKIP() << "both ends of an in-process connection share the secret";
  ConnectOptions options;
  options.job = kJob;
  options.secret = {9, 9, 9};
  ASSERT_TRUE(rig_->client().connect(rig_->address, options).ok());
  ASSERT_TRUE(rig_->poll_until([&] { return !rig_->client_end.closed.empty() && !rig_->server_end.closed.empty(); }));
  EXPECT_TRUE(absl::IsPermissionDenied(rig_->client_end.closed[0])) << rig_->client_end.closed[0];
  EXPECT_THAT(std::string(rig_->client_end.closed[0].message()), HasSubstr("wrong secret"));
  EXPECT_TRUE(rig_->server_end.connections.empty());
}

TEST_P(Conformance, PingsKeepAnIdleConnectionUp) {
  if (!GetParam().has_network) GTEST_SKIP() << "an in-process connection cannot fall silent";
  ASSERT_NE(rig_->connected().first, nullptr);
  // In the time in which two silent peers after each other are disconnected, this idle connection stays up.
  for (int i = 0; i < 2; ++i) {
    const auto silent = silent_pair({});
    while (silent->client_end.closed.empty()) {
      clock_.jump(absl::Minutes(1));
      rig_->poll_both();
      silent->client().poll(absl::ZeroDuration());
    }
  }
  EXPECT_TRUE(rig_->client_end.closed.empty());
  EXPECT_TRUE(rig_->server_end.closed.empty());
  EXPECT_TRUE(rig_->client_end.received.empty()) << "pings are not delivered";
}

TEST_P(Conformance, AllArrivedIsTrueOnceThePeerHasAcknowledged) {
  make({.ping_after = absl::Milliseconds(20)});
  Connection* const connection = rig_->connected().first;
  ASSERT_NE(connection, nullptr);
  // The client receives the server's pings all the time, which must not count as acknowledgements.
  for (uint64_t step = 0; step < 2; ++step) {
    connection->send(push_header(step), rig_->client_end.pool.take(100'000));
    EXPECT_FALSE(connection->all_arrived()) << "the peer has not acknowledged yet";
    rig_->client().flush();
    EXPECT_FALSE(connection->all_arrived());
    ASSERT_TRUE(rig_->poll_until([&] { return connection->all_arrived(); }));
    EXPECT_EQ(rig_->server_end.received.size(), step + 1);
  }
}

TEST_P(Conformance, PingsMeasureTheAnswerTime) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->answer_time(), absl::ZeroDuration());
  const absl::Duration begin = clock_.since_start();
  client->send(push(0), pattern(pool_, 100'000, 0));
  client->ping(3);
  client->send(push(1), {});
  ASSERT_TRUE(rig_->poll_until(
      [&, client = client] { return !client->is_pinging() && rig_->server_end.received.size() == 2; }));
  if (!GetParam().has_network) {
    EXPECT_EQ(client->answer_time(), absl::ZeroDuration());
  } else {
    EXPECT_GT(client->answer_time(), absl::ZeroDuration());
    EXPECT_LT(client->answer_time(), clock_.since_start() - begin);
  }
  EXPECT_TRUE(same(rig_->server_end.received[0].payload, pattern(pool_, 100'000, 0)));
  EXPECT_TRUE(rig_->client_end.received.empty()) << "a PONG is not delivered";
  EXPECT_EQ(server->answer_time(), absl::ZeroDuration()) << "only the side that asks is told";
}

TEST_P(Conformance, ASilentPeerIsDisconnected) {
  if (!GetParam().has_network) GTEST_SKIP() << "an in-process connection cannot fall silent";
  ASSERT_NE(rig_->connected().first, nullptr);
  while (rig_->client_end.closed.empty()) {
    clock_.jump(absl::Minutes(1));
    rig_->client().poll(absl::Milliseconds(10));  // the server never polls
  }
  EXPECT_TRUE(absl::IsDeadlineExceeded(rig_->client_end.closed[0])) << rig_->client_end.closed[0];
  EXPECT_THAT(std::string(rig_->client_end.closed[0].message()), HasSubstr("silent"));
}

TEST_P(Conformance, APauseOfThisProcessIsNotSilenceOfThePeer) {
  if (!GetParam().has_network) GTEST_SKIP() << "an in-process connection cannot fall silent";
  ASSERT_NE(rig_->connected().first, nullptr);
  // Each end also connects to a server that never polls. Once that connection has timed out, the end has looked at the
  // clock since the pause.
  const auto silent = GetParam().make(env_, {});
  const ConnectOptions options = connect_options(rig_->job);
  ASSERT_TRUE(rig_->client().connect(silent->address, options).ok());
  ASSERT_TRUE(rig_->server().connect(silent->address, options).ok());
  clock_.jump(absl::Hours(1));
  ASSERT_TRUE(rig_->poll_until([&] { return !rig_->client_end.closed.empty() && !rig_->server_end.closed.empty(); }));
  for (const End* end : {&rig_->client_end, &rig_->server_end}) {
    EXPECT_EQ(end->closed.size(), 1u);
    EXPECT_EQ(end->connections.size(), 1u) << "the idle connection is up";
    EXPECT_THAT(std::string(end->closed[0].message()), HasSubstr("in time"));
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Conformance, ::testing::ValuesIn(all_transports()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace gleaner::transport
