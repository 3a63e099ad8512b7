// Tests of the bandwidth measurement between two agents, on loopback.
#include "agent/probe/measure.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>

#include "agent/probe/peer_probe.h"
#include "agent/probe/proof.h"
#include "agent/probe/socket.h"
#include "tests/loopback6.h"

namespace gleaner::probe {
namespace {

class MeasureTest : public testing::Test {
 protected:
  const Env& env() const { return system_.env(); }
  std::unique_ptr<MeasureServer> serve(const std::string& secret) {
    auto server = MeasureServer::start(env(), {"127.0.0.1", 0}, secret, absl::Milliseconds(1));
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }
  // Measures until the time limits of a measurement suffice, which may be short for a machine under load.
  absl::StatusOr<double> measure_patiently(const Address& peer, const std::string& secret) const {
    absl::StatusOr<double> rate = measure(env(), peer, secret);
    while (absl::IsDeadlineExceeded(rate.status()) || absl::IsUnavailable(rate.status())) {
      rate = measure(env(), peer, secret);  // the time limit of the test is the deadline
    }
    return rate;
  }
  absl::Duration deadline() const { return env().clock->since_start() + absl::Minutes(1); }
  // measure() takes the address of an agent on another machine. Another loopback address stands for it.
  Address from_elsewhere(const MeasureServer& server) const { return {"127.0.0.2", server.address().port}; }

 private:
  SystemEnv system_{{.component = "test", .level = LogLevel::kOff}};
};

TEST_F(MeasureTest, MeasuresABandwidthWithinItsTimeLimit) {
  auto server = MeasureServer::start(env(), {"0.0.0.0", 0}, "secret", absl::Milliseconds(1));
  ASSERT_TRUE(server.ok()) << server.status();
  for (int i = 0; i < 2; ++i) {
    const absl::StatusOr<double> rate = measure_patiently(from_elsewhere(**server), "secret");
    ASSERT_TRUE(rate.ok()) << rate.status();
    EXPECT_GT(*rate, 1e6);
    EXPECT_LT(*rate, 1e13);
  }
}

TEST_F(MeasureTest, PathHasAnAnswerTime) {
  auto server = MeasureServer::start(env(), {"0.0.0.0", 0}, "secret", absl::Milliseconds(1), absl::Minutes(1));
  ASSERT_TRUE(server.ok()) << server.status();
  const absl::StatusOr<MeasuredPath> path =
      measure_path(env(), from_elsewhere(**server), "secret", {.most = absl::Minutes(1)});
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_GT(path->round_trip, absl::ZeroDuration());
  EXPECT_GE(path->answer_time, path->round_trip);
  EXPECT_LT(path->answer_time, absl::Minutes(1));
}

TEST_F(MeasureTest, WrongSecretIsRefusedByBothSides) {
  auto server = MeasureServer::start(env(), {"0.0.0.0", 0}, "secret", absl::Milliseconds(1));
  ASSERT_TRUE(server.ok());
  EXPECT_EQ(measure_patiently(from_elsewhere(**server), "other").status().code(), absl::StatusCode::kPermissionDenied);

  // A server that accepts every peer, but can't prove that it knows the secret.
  absl::StatusOr<Socket> impostor = Socket::listen({"127.0.0.2", 0});
  ASSERT_TRUE(impostor.ok());
  std::atomic<bool> over = false;
  std::thread thread([&] {
    while (!over) {
      const absl::StatusOr<Socket> peer = impostor->accept();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      if (!peer.ok()) continue;
      const Hello hello;
      const Proof proof{};
      Answer answer;
      // An error means that the peer's time limit is over. It tries again.
      (void)peer->write(&hello, sizeof(hello), *env().clock, deadline());
      (void)peer->write(proof.data(), proof.size(), *env().clock, deadline());
      (void)peer->read(&answer, sizeof(answer), *env().clock, deadline());
    }
  });
  EXPECT_EQ(measure_patiently(*impostor->local_address(), "secret").status().code(),
            absl::StatusCode::kPermissionDenied);
  over = true;
  thread.join();
}

TEST_F(MeasureTest, ServerSurvivesSilentClientsAndClientsThatSendGarbage) {
  auto server = MeasureServer::start(env(), {"0.0.0.0", 0}, "secret", absl::Milliseconds(1));
  ASSERT_TRUE(server.ok());
  const absl::StatusOr<Socket> silent = Socket::connect(from_elsewhere(**server), *env().clock, deadline());
  ASSERT_TRUE(silent.ok()) << silent.status();
  const absl::StatusOr<Socket> talkative = Socket::connect(from_elsewhere(**server), *env().clock, deadline());
  ASSERT_TRUE(talkative.ok());
  const std::string noise(1000, 'x');
  EXPECT_TRUE(talkative->write(noise.data(), noise.size(), *env().clock, deadline()).ok());
  const absl::StatusOr<double> rate = measure_patiently(from_elsewhere(**server), "secret");
  EXPECT_TRUE(rate.ok()) << rate.status();
}

TEST_F(MeasureTest, MachineDoesNotMeasureItself) {
  const auto server = serve("secret");
  EXPECT_EQ(measure(env(), server->address(), "secret").status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(MeasureTest, AnAddressWithoutAServerIsUnavailable) {
  EXPECT_EQ(measure(env(), {"127.0.0.2", 1}, "secret").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(MeasureTest, ServesIPv6AndNames) {
  const auto named = MeasureServer::start(env(), {"localhost", 0}, "secret");
  EXPECT_TRUE(named.ok()) << named.status();
  SKIP_WITHOUT_LOOPBACK6();
  for (const char* host : {"::1", "::"}) {
    const auto server = MeasureServer::start(env(), {host, 0}, "secret", absl::Milliseconds(1));
    ASSERT_TRUE(server.ok()) << server.status();
    EXPECT_EQ(server.value()->address().host, host);
    const absl::StatusOr<Socket> peer =
        Socket::connect({"::1", server.value()->address().port}, *env().clock, deadline());
    ASSERT_TRUE(peer.ok()) << peer.status();
    Hello hello;
    EXPECT_TRUE(peer->read(&hello, sizeof(hello), *env().clock, deadline()).ok());
    EXPECT_EQ(hello.magic, Hello().magic);
  }
  EXPECT_EQ(resolve({"::1", 7079}).value(), (std::vector<Address>{{"::1", 7079}}));
}

TEST_F(MeasureTest, ServerNeedsASecretAndAFreePort) {
  EXPECT_FALSE(MeasureServer::start(env(), {"127.0.0.1", 0}, "").ok());
  const auto server = serve("secret");
  EXPECT_EQ(MeasureServer::start(env(), server->address(), "secret").status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(MeasureTest, ProbeMeasuresOnlyWhenItIsNeeded) {
  const auto other = MeasureServer::start(env(), {"0.0.0.0", 0}, "secret", absl::Milliseconds(1));
  ASSERT_TRUE(other.ok());
  PeerProbe::Options options{{"127.0.0.1", 0}, from_elsewhere(**other), "secret"};
  options.first = options.retry = options.period = absl::Milliseconds(20);
  LoadBudget budget;
  const auto probe = PeerProbe::start(env(), options, budget);
  ASSERT_TRUE(probe.ok()) << probe.status();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_EQ((*probe)->bits_per_second(), 0) << "no measurement was requested";
  (*probe)->set_needed(true);
  while ((*probe)->bits_per_second() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_GT((*probe)->bits_per_second(), 0);
}

TEST_F(MeasureTest, ProbeWithoutAnotherAgentMeasuresNothing) {
  const auto other = serve("secret");
  PeerProbe::Options options{{"127.0.0.1", 0}, other->address(), "secret"};
  options.first = options.retry = absl::Milliseconds(5);
  LoadBudget budget;
  const auto probe = PeerProbe::start(env(), options, budget);
  ASSERT_TRUE(probe.ok());
  (*probe)->set_needed(true);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ((*probe)->bits_per_second(), 0);
}

TEST(Proofs, AreOfOneSideOneExchangeAndOneSecret) {
  Nonce a{}, b{};
  a[0] = 1, b[31] = 2;
  const Proof proof = prove("client", a, b, "secret");
  EXPECT_TRUE(same_proof(proof, prove("client", a, b, "secret")));
  EXPECT_FALSE(same_proof(proof, prove("server", a, b, "secret")));
  EXPECT_FALSE(same_proof(proof, prove("client", b, a, "secret")));
  EXPECT_FALSE(same_proof(proof, prove("client", a, a, "secret")));
  EXPECT_FALSE(same_proof(proof, prove("client", a, b, "secret2")));
}

TEST(Resolve, GivesEveryAddressThePort) {
  const absl::StatusOr<std::vector<Address>> addresses = resolve({"localhost", 7079});
  ASSERT_TRUE(addresses.ok()) << addresses.status();
  ASSERT_FALSE(addresses->empty());
  EXPECT_EQ(addresses->front().port, 7079);
  EXPECT_FALSE(resolve({"no-such-name.invalid", 1}).ok());
}

}  // namespace
}  // namespace gleaner::probe
