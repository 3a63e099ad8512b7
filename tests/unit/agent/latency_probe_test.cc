// Tests packets of latencies, and agents that measure each other, on loopback.
#include "agent/probe/latency_probe.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <cstring>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"

namespace gleaner::probe {
namespace {

constexpr PacketNonce kNonce = {1, 2, 3};

ConstBytes bytes_of(const LatencyPacket& packet) { return std::as_bytes(std::span(&packet, 1)); }

TEST(LatencyPackets, RoundTrip) {
  const LatencyPacket question = make_question(7, 65535, kNonce, "secret");
  const auto asked = read_packet(bytes_of(question), "secret");
  ASSERT_TRUE(asked.has_value());
  EXPECT_EQ(asked->kind, PacketKind::kQuestion);
  EXPECT_EQ(asked->sequence, 7);
  EXPECT_EQ(asked->round, 65535);
  const LatencyPacket answer = make_answer(*asked, std::string(253, 'n'), absl::Microseconds(41), "secret");
  const auto answered = read_packet(bytes_of(answer), "secret");
  ASSERT_TRUE(answered.has_value());
  EXPECT_EQ(answered->kind, PacketKind::kAnswer);
  EXPECT_EQ(answered->sequence, 7);
  EXPECT_EQ(answered->nonce, kNonce);
  EXPECT_EQ(node_of(*answered), std::string(253, 'n'));
  EXPECT_EQ(held_of(*answered), absl::Microseconds(41));
  EXPECT_EQ(held_of(make_answer(*asked, "n", absl::Hours(1), "secret")), absl::Nanoseconds(4294967295));
  EXPECT_EQ(held_of(make_answer(*asked, "n", -absl::Hours(1), "secret")), absl::ZeroDuration());
}

TEST(LatencyPackets, EveryChangedBitIsRefused) {
  LatencyPacket answer = make_answer(make_question(7, 8, kNonce, "secret"), "n", absl::ZeroDuration(), "secret");
  EXPECT_FALSE(read_packet(bytes_of(answer), "other").has_value());
  EXPECT_FALSE(read_packet(bytes_of(answer).first(sizeof(answer) - 1), "secret").has_value());
  auto* bytes = reinterpret_cast<uint8_t*>(&answer);
  for (size_t i = 0; i < sizeof(answer); ++i) {
    bytes[i] ^= 1;
    EXPECT_FALSE(read_packet(bytes_of(answer), "secret").has_value()) << "byte " << i;
    bytes[i] ^= 1;
  }
}

TEST(LatencyPackets, NameMustBeOneOfANode) {
  const LatencyPacket question = make_question(0, 0, kNonce, "secret");
  for (const std::string& name : {std::string(), std::string("a b"), std::string("N"), std::string("a\0b", 3)}) {
    const LatencyPacket answer = make_answer(question, name, absl::ZeroDuration(), "secret");
    EXPECT_FALSE(read_packet(bytes_of(answer), "secret").has_value()) << name;
  }
}

class LatencyProbeTest : public testing::Test {
  SystemEnv system_{{.component = "test", .level = LogLevel::kOff}};

 protected:
  const Env& env() const { return system_.env(); }
  // Agent i listens at 127.0.0.(2 + i), all at the port of the first.
  LatencyProbe& start(const std::string& secret = "secret") {
    const size_t i = agents_.size();
    const Address listen{absl::StrCat("127.0.0.", 2 + i), port()};
    auto agent =
        LatencyProbe::start(env(), {.listen = listen,
                                    .peer_port = port(),
                                    .secret = secret,
                                    .node = absl::StrCat("n", i),
                                    .times = {.round = absl::Milliseconds(200), .silence = absl::Milliseconds(1)}});
    EXPECT_TRUE(agent.ok()) << agent.status();
    return *agents_.emplace_back(*std::move(agent));
  }
  // Tells all agents of `hosts`.
  void introduce(const std::vector<std::string>& hosts) {
    for (const auto& agent : agents_) {
      const AgentOrder order = in_order(hosts, agent->address().host);
      agent->set_peers({order, choose_peers(order, {}, {})});
      agent->set_bits_per_second(10e9);
    }
  }
  std::vector<std::string> hosts() const {
    std::vector<std::string> hosts;
    for (const auto& agent : agents_) hosts.push_back(agent->address().host);
    return hosts;
  }
  UdpSocket other() const { return *UdpSocket::bind({"127.0.0.99", 0}); }
  SocketAddress address_of(const LatencyProbe& agent) const { return gleaner::resolve(agent.address())->front(); }
  template <class Condition>
  static void await(Condition condition) {
    while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  static UdpSocket::Received receive(const UdpSocket& socket, MutableBytes into) {
    pollfd entry{socket.fd(), POLLIN, 0};
    poll(&entry, 1, -1);
    return **socket.receive(into);
  }

  std::vector<std::unique_ptr<LatencyProbe>> agents_;  // they use system_

 private:
  // The first agent must not get port 0, since its peers have the same port, which is free at all their addresses.
  uint16_t port() {
    for (; port_ == 0;) {
      const uint16_t candidate = UdpSocket::bind({"127.0.0.2", 0})->local_address()->port;
      if (UdpSocket::bind({"0.0.0.0", candidate}).ok()) port_ = candidate;
    }
    return port_;
  }

  uint16_t port_ = 0;
};

TEST_F(LatencyProbeTest, AgentsMeasureEachOther) {
  for (int i = 0; i < 3; ++i) start();
  introduce(hosts());
  for (size_t i = 0; i < 3; ++i) {
    await([&] { return agents_[i]->report().entries.size() == 2; });
    std::set<std::string> nodes;
    for (const api::PeerLatency& entry : agents_[i]->report().entries) {
      nodes.insert(entry.node);
      EXPECT_GT(entry.round_trip, absl::ZeroDuration());
      EXPECT_LE(entry.round_trip, absl::Seconds(1));
    }
    EXPECT_EQ(nodes, (std::set<std::string>{absl::StrCat("n", (i + 1) % 3), absl::StrCat("n", (i + 2) % 3)}));
    EXPECT_EQ(agents_[i]->report().refused, 0U);
  }
}

TEST_F(LatencyProbeTest, OtherSecretIsRefusedWithoutAnAnswer) {
  start("secret"), start("other");
  introduce(hosts());
  for (const auto& agent : agents_) {
    await([&] { return agent->report().lost > 0 && agent->report().refused > 0; });
    EXPECT_TRUE(agent->report().entries.empty());
  }
}

TEST_F(LatencyProbeTest, AgentThatGoesIsLost) {
  LatencyProbe& here = start();
  introduce({here.address().host, "127.0.0.77"});
  await([&] { return here.report().lost > 0; });
  EXPECT_EQ(here.report().coverage.missing, 1U);
}

TEST_F(LatencyProbeTest, ReplayedQuestionGetsAnotherAnswerOfItsSize) {
  const LatencyProbe& agent = start();
  const UdpSocket socket = other();
  const LatencyPacket question = make_question(0, 0, kNonce, "secret");
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(socket.send(bytes_of(question), address_of(agent)).ok());
    std::array<std::byte, 1000> bytes;
    const UdpSocket::Received answer = receive(socket, bytes);
    EXPECT_EQ(answer.bytes, sizeof(question));
    EXPECT_EQ(node_of(*read_packet(std::span(bytes).first(answer.bytes), "secret")), "n0");
  }
  EXPECT_TRUE(agent.report().entries.empty());
}

TEST_F(LatencyProbeTest, GarbageIsCountedAndGetsNoAnswer) {
  const LatencyProbe& agent = start();
  const UdpSocket socket = other();
  const LatencyPacket question = make_question(0, 0, kNonce, "secret");
  std::vector<std::byte> longer(bytes_of(question).begin(), bytes_of(question).end());
  longer.resize(2000);
  const LatencyPacket forged = make_question(0, 0, kNonce, "guessed");
  for (const ConstBytes garbage : {ConstBytes(longer), ConstBytes(longer).first(0), bytes_of(forged)}) {
    ASSERT_TRUE(socket.send(garbage, address_of(agent)).ok());
  }
  ASSERT_TRUE(socket.send(bytes_of(question), address_of(agent)).ok());
  std::array<std::byte, 1000> bytes;
  EXPECT_EQ(receive(socket, bytes).bytes, sizeof(question)) << "the answer to the last packet is the first one";
  EXPECT_EQ(agent.report().refused, 3U);
}

TEST_F(LatencyProbeTest, OnlyTheAnswerToTheQuestionInFlightCounts) {
  const LatencyProbe& agent = start();
  const UdpSocket peer = *UdpSocket::bind({"127.0.0.99", agent.address().port});
  introduce({agent.address().host, "127.0.0.99"});
  std::array<std::byte, 1000> bytes;
  const UdpSocket::Received received = receive(peer, bytes);
  LatencyPacket question = *read_packet(std::span(bytes).first(received.bytes), "secret");
  const LatencyPacket answer = make_answer(question, "asked", absl::ZeroDuration(), "secret");
  question.nonce[0] ^= 1;
  const LatencyPacket earlier = make_answer(question, "unasked", absl::ZeroDuration(), "secret");
  for (const LatencyPacket& packet : {earlier, answer}) ASSERT_TRUE(peer.send(bytes_of(packet), received.from).ok());
  await([&] { return !agent.node_names().empty(); });
  EXPECT_EQ(agent.node_names(), (Texts{{"127.0.0.99", "asked"}}));
}

TEST_F(LatencyProbeTest, NeedsASecretANodeAndAFreePort) {
  const LatencyProbe& agent = start();
  LatencyProbe::Options options{.listen = agent.address(), .peer_port = 1, .secret = "secret", .node = "n"};
  EXPECT_TRUE(absl::IsUnavailable(LatencyProbe::start(env(), options).status()));
  options.listen.port = 0;
  EXPECT_TRUE(LatencyProbe::start(env(), options).ok());
  options.node = "No Node";
  EXPECT_TRUE(absl::IsInvalidArgument(LatencyProbe::start(env(), options).status()));
  options.node = "n", options.secret = "";
  EXPECT_TRUE(absl::IsInvalidArgument(LatencyProbe::start(env(), options).status()));
  options.secret = "secret", options.listen.host = "192.0.2.1";
  EXPECT_TRUE(absl::IsInvalidArgument(LatencyProbe::start(env(), options).status()));
}

}  // namespace
}  // namespace gleaner::probe
