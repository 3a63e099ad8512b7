// Tests of the tcp transport beyond the conformance suite: unauthenticated connections, peers that violate the
// protocol, and a process that has no free descriptors.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <random>

#include "common/transport/tcp/connection.h"
#include "common/transport/tcp/transport.h"
#include "tests/conformance/raw_peer.h"
#include "tests/conformance/rig.h"
#include "tests/jumping_clock.h"

namespace gleaner::transport {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class Tcp : public ::testing::Test {
 protected:
  void SetUp() override { make({}); }
  void make(const Limits& limits) {
    rig_.reset();
    rig_ = all_transports()[0].make(env_, limits);
  }

  static wire::Header header(wire::FrameType type) {
    wire::Header header;
    header.type = type;
    header.job = kJob;
    return header;
  }
  static std::string message(const absl::Status& status) { return std::string(status.message()); }
  // Expects that the peer is closed with a message that contains `part`, and that other peers can still connect.
  void expect_closed(const std::string& part) {
    ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.closed.size() == 1; }));
    EXPECT_THAT(message(rig_->server_end.closed[0]), HasSubstr(part));
    EXPECT_THAT(message(rig_->server_end.closed[0]), HasSubstr("127.0.0.1:")) << "says who";
    EXPECT_NE(rig_->connected().first, nullptr);
    EXPECT_TRUE(rig_->server_end.received.empty());
  }
  // Does the client's part of the handshake.
  void greet(RawPeer& peer) {
    const auto poll = [this] { rig_->poll_both(); };
    wire::ClientHandshake client(kJob, 3, rig_->job.secret, wire::Nonce{4});
    peer.send(client.hello().header, client.hello().payload);
    while (!client.done()) {
      const auto [header, payload] = peer.receive(poll);
      const auto answer = client.on_frame(header, std::as_bytes(std::span(payload)));
      ASSERT_TRUE(answer.ok()) << answer.status();
      for (const wire::HandshakeFrame& frame : *answer) peer.send(frame.header, frame.payload);
    }
    ASSERT_EQ(rig_->server_end.connections.size(), 1u);
  }

  SystemEnv system_{LogOptions{"test", LogLevel::kOff}};
  JumpingClock clock_{system_.env().clock};
  const Env env_{&clock_, system_.env().random, system_.env().log};
  std::unique_ptr<Rig> rig_;
};

TEST_F(Tcp, AnotherProtocolIsRefused) {
  RawPeer peer(rig_->address);
  peer.send("GET / HTTP/1.1\r\nHost: example\r\nUser-Agent: somebody else entirely\r\n\r\n");
  expect_closed("another protocol");
}

TEST_F(Tcp, AnotherVersionGetsAnErrorWithBothVersions) {
  RawPeer peer(rig_->address);
  wire::Header hello = header(wire::FrameType::kHello);
  wire::seal(hello, {});
  hello.version = 9;
  peer.send_as_is(hello);
  const auto [answer, text] = peer.receive([this] { rig_->poll_both(); });
  EXPECT_EQ(answer.type, wire::FrameType::kReject);
  EXPECT_THAT(text, HasSubstr("version 9, this side version 5"));
  expect_closed("version 9, this side version 5");
}

TEST_F(Tcp, AFlippedBit) {
  RawPeer peer(rig_->address);
  wire::Header hello = header(wire::FrameType::kHello);
  wire::seal(hello, {});
  hello.tensor ^= 4;
  peer.send_as_is(hello);
  expect_closed("checksum");
}

TEST_F(Tcp, RandomBytes) {
  std::mt19937_64 random(17);
  std::vector<std::byte> bytes(4096);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  RawPeer peer(rig_->address);
  peer.send(bytes);
  expect_closed("another protocol");
}

TEST_F(Tcp, ASumBeforeTheHandshakeGetsNoBuffer) {
  bool asked = false;
  rig_->server_end.when_header = [&](Connection&, const wire::Header&) { asked = true; };
  RawPeer peer(rig_->address);
  peer.send(header(wire::FrameType::kPush), std::vector<std::byte>(1000));
  expect_closed("PUSH frame before the handshake");
  EXPECT_FALSE(asked);
}

TEST_F(Tcp, ALargeHelloIsRefusedByItsHeader) {
  RawPeer peer(rig_->address);
  wire::Header hello = header(wire::FrameType::kHello);
  wire::seal(hello, std::vector<std::byte>(513));
  peer.send_as_is(hello);
  expect_closed("at most 512");
}

TEST_F(Tcp, AStreamThatEndsWithinAFrame) {
  RawPeer peer(rig_->address);
  greet(peer);
  wire::Header push = header(wire::FrameType::kPush);
  wire::seal(push, std::vector<std::byte>(1000));
  peer.send_as_is(push);
  peer.finish();
  expect_closed("closed by the peer");
  EXPECT_TRUE(absl::IsUnavailable(rig_->server_end.closed[0]));
}

TEST_F(Tcp, ADamagedPayloadIsNotDelivered) {
  RawPeer peer(rig_->address);
  greet(peer);
  std::vector<std::byte> payload(1000);
  wire::Header push = header(wire::FrameType::kPush);
  wire::seal(push, payload);
  payload[500] ^= std::byte{1};
  peer.send_as_is(push);
  peer.send(payload);
  expect_closed("checksum");
  EXPECT_TRUE(absl::IsDataLoss(rig_->server_end.closed[0]));
}

TEST_F(Tcp, ASecondHandshakeIsRefused) {
  RawPeer peer(rig_->address);
  greet(peer);
  peer.send(header(wire::FrameType::kHello), std::vector<std::byte>(32));
  expect_closed("HELLO frame after the handshake");
}

TEST_F(Tcp, APingIsAnswered) {
  RawPeer peer(rig_->address);
  greet(peer);
  peer.send(header(wire::FrameType::kPing));
  EXPECT_EQ(peer.receive([this] { rig_->poll_both(); }).first.type, wire::FrameType::kPong);
}

TEST_F(Tcp, APeerThatOnlyPingsUsesNoMemory) {
  RawPeer peer(rig_->address);
  greet(peer);
  wire::Header ping = header(wire::FrameType::kPing);
  wire::seal(ping, {});
  const std::vector<wire::Header> pings(100, ping);
  for (int i = 0; i < 1000; ++i) {
    peer.send(std::as_bytes(std::span(pings)));
    rig_->server().poll(absl::Milliseconds(1));
    ASSERT_LT(rig_->server_end.connections.at(0)->queued_bytes(), 64u << 10);
  }
}

TEST_F(Tcp, SilenceBeforeTheHandshakeEndsTheConnection) {
  RawPeer peer(rig_->address);
  ASSERT_TRUE(rig_->poll_until([&] {
    clock_.jump(absl::Minutes(1));  // the first jumps may come before the server has accepted the connection
    return !rig_->server_end.closed.empty();
  }));
  expect_closed("no handshake");
  EXPECT_TRUE(absl::IsDeadlineExceeded(rig_->server_end.closed[0])) << rig_->server_end.closed[0];
}

TEST_F(Tcp, ASlowFrameIsNotSilence) {
  RawPeer peer(rig_->address);
  greet(peer);
  wire::Header push = header(wire::FrameType::kPush);
  wire::seal(push, std::vector<std::byte>(1 << 20));
  peer.send_as_is(push);
  // In the time in which two silent peers after each other are disconnected, this peer's frame goes on arriving.
  for (int i = 0; i < 2; ++i) {
    const auto silent = all_transports()[0].make(env_, {});
    ASSERT_NE(silent->connected().first, nullptr);
    while (silent->client_end.closed.empty()) {
      clock_.jump(absl::Minutes(1));
      peer.send(std::vector<std::byte>(100));
      rig_->poll_both();
      silent->client().poll(absl::ZeroDuration());
    }
  }
  EXPECT_TRUE(rig_->server_end.closed.empty()) << rig_->server_end.closed[0];
  ASSERT_TRUE(rig_->poll_until([&] {
    clock_.jump(absl::Minutes(1));
    return rig_->server_end.closed.size() == 1;
  }));
  EXPECT_THAT(message(rig_->server_end.closed[0]), HasSubstr("has been silent"));
}

TEST_F(Tcp, AServerThatNeverAnswersIsDisconnected) {
  ASSERT_TRUE(rig_->client().connect(rig_->address, {.job = kJob, .timeout = absl::Minutes(5)}).ok());
  clock_.jump(absl::Minutes(6));
  while (rig_->client_end.closed.empty()) rig_->client().poll(absl::Milliseconds(10));  // the server never polls
  EXPECT_TRUE(absl::IsDeadlineExceeded(rig_->client_end.closed[0])) << rig_->client_end.closed[0];
  EXPECT_THAT(message(rig_->client_end.closed[0]), HasSubstr(rig_->address.to_string()));
}

TEST_F(Tcp, IdleUnauthenticatedConnectionsMakeRoom) {
  make({.max_strangers = 2});
  const RawPeer first(rig_->address);
  ASSERT_TRUE(rig_->poll_until([&] { return !rig_->server().pending(); }));
  const RawPeer second(rig_->address);
  const RawPeer third(rig_->address);
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsResourceExhausted(rig_->server_end.closed[0])) << rig_->server_end.closed[0];
  EXPECT_NE(rig_->connected().first, nullptr);
}

TEST_F(Tcp, WithoutFreeDescriptorsItContinuesAndAcceptsLater) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const RawPeer waiting(rig_->address);  // in the backlog
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  rlimit none = before;
  const int lowest_free = open("/dev/null", O_RDONLY);
  close(lowest_free);
  none.rlim_cur = static_cast<rlim_t>(lowest_free);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  for (uint64_t i = 0; i < 50; ++i) {
    client->send(header(wire::FrameType::kAck), {});
    rig_->poll_both();
  }
  EXPECT_EQ(rig_->server_end.connections.size(), 1u);
  EXPECT_GT(rig_->server_end.received.size(), 0u) << "the open connection goes on";
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_NE(rig_->connected().first, nullptr);
}

// Returns the pacing rate of a connection's socket, in bits per second.
double pace_of(const Connection* connection) {
  uint64_t bytes_per_second = 0;
  socklen_t size = sizeof(bytes_per_second);
  const int descriptor = static_cast<const tcp::Connection*>(connection)->descriptor();
  EXPECT_EQ(getsockopt(descriptor, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second, &size), 0);
  return 8.0 * static_cast<double>(bytes_per_second);
}

TEST_F(Tcp, AcceptedConnectionsShareThePace) {
  auto& server = static_cast<tcp::Transport&>(rig_->server());
  server.pace(80e6);
  const auto [first, first_served] = rig_->connected();
  EXPECT_DOUBLE_EQ(pace_of(first_served), 80e6);
  EXPECT_GT(pace_of(first), 1e12) << "the pace does not limit outgoing connections";
  const auto [second, second_served] = rig_->connected();
  EXPECT_DOUBLE_EQ(pace_of(first_served), 40e6);
  EXPECT_DOUBLE_EQ(pace_of(second_served), 40e6);
  second->close(absl::OkStatus());
  ASSERT_TRUE(rig_->poll_until([&] { return rig_->server_end.connections.size() == 1; }));
  EXPECT_DOUBLE_EQ(pace_of(first_served), 80e6);
  server.pace(160e6);
  EXPECT_DOUBLE_EQ(pace_of(first_served), 160e6);
}

TEST_F(Tcp, TheRoundTripIsMeasured) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  EXPECT_GT(client->round_trip(), absl::ZeroDuration());
  EXPECT_LT(client->round_trip(), absl::Minutes(1)) << "the unit is right";
}

TEST_F(Tcp, ConfirmedBytesAreCounted) {
  const auto [client, server] = rig_->connected();
  ASSERT_NE(client, nullptr);
  const auto before = client->sent();
  ASSERT_TRUE(before.has_value());
  constexpr size_t kBytes = 1 << 20;
  client->send(header(wire::FrameType::kPush), rig_->client_end.pool.take(kBytes));
  ASSERT_TRUE(rig_->poll_until([&] { return client->sent()->bytes >= before->bytes + kBytes; }));
  EXPECT_LT(client->sent()->bytes, before->bytes + kBytes + 1000) << "the frame's header, and PINGs";
  EXPECT_GT(client->sent()->busy, before->busy);
  EXPECT_LT(client->sent()->busy, absl::Minutes(2)) << "the unit is right";
}

TEST_F(Tcp, AllAddressesOfANameAreTried) {
  // The server listens on 127.0.0.1 only; localhost may be ::1 first.
  rig_->address.host = "localhost";
  EXPECT_NE(rig_->connected().first, nullptr);
}

TEST_F(Tcp, IPv6) {
  auto rig = all_transports()[0].make(env_, {});
  const auto address = rig->client().listen({"::1", 0});
  if (!address.ok()) GTEST_SKIP() << address.status();
  rig->client_end.connections.clear();
  ASSERT_TRUE(rig->server().connect(*address, {.job = kJob, .member = 1, .secret = rig->job.secret}).ok());
  ASSERT_TRUE(rig->poll_until([&] { return rig->client_end.connections.size() == 1; }));
  EXPECT_THAT(rig->client_end.connections[0]->peer().address, StartsWith("[::1]:"));
}

TEST_F(Tcp, ListensOnAddressesOfThisMachineOnly) {
  const absl::Status status = rig_->client().listen({"192.0.2.1", 0}).status();  // reserved for documentation
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_THAT(message(status), HasSubstr("192.0.2.1:0: this machine has no such address"));
}

}  // namespace
}  // namespace gleaner::transport
