// Tests measurements of bandwidths between agents, on loopback.
#include "agent/probe/bandwidth_probe.h"

#include <gmock/gmock.h>

#include "agent/probe/measure.h"

namespace gleaner::probe {
namespace {

// An agent on 127.0.0.1, and one on 127.0.0.2, which stands for another machine, and serves at the port of both.
class BandwidthProbeTest : public testing::Test {
 protected:
  BandwidthProbeTest() {
    auto server =
        MeasureServer::start(env(), {"127.0.0.2", 0}, "secret", absl::Milliseconds(1), absl::Minutes(1), &peer_budget_);
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    budget_.set_nic(1e12, 0);
    probe_.emplace(env(), BandwidthProbe::Options{server_->address().port, "secret", absl::Milliseconds(5)}, budget_);
  }
  const Env& env() const { return system_.env(); }
  void choose(const std::string& host) { probe_->set_peers({{"peer"}, {"peer"}, {{"peer", host}}}); }
  // Waits for the end of the first measurement.
  BandwidthReport first() const {
    while (true) {
      const BandwidthReport report = probe_->report();
      if (report.measured + report.declined + report.failed > 0) return report;
      absl::SleepFor(absl::Milliseconds(5));
    }
  }

  SystemEnv system_{{.component = "test", .level = LogLevel::kOff}};
  LoadBudget budget_, peer_budget_;
  std::unique_ptr<MeasureServer> server_;
  std::optional<BandwidthProbe> probe_;
};

TEST_F(BandwidthProbeTest, MeasuresOnceAndBothSidesPay) {
  peer_budget_.set_nic(1e12, 0);
  while (true) {  // a measurement may be too slow for a machine under load
    choose("127.0.0.2");
    const BandwidthReport report = first();
    if (report.measured > 0) {
      EXPECT_EQ(report.entries.front().node, "peer");
      EXPECT_GT(report.entries.front().bits_per_second, 1e6);
      break;
    }
    ASSERT_EQ(report.declined, 0U);
    probe_.emplace(env(), BandwidthProbe::Options{server_->address().port, "secret", absl::Milliseconds(5)}, budget_);
  }
  EXPECT_FALSE(budget_.allows(env().clock->since_start()));
  EXPECT_FALSE(peer_budget_.allows(env().clock->since_start()));
}

TEST_F(BandwidthProbeTest, BusyPeerIsNotLoaded) {
  choose("127.0.0.2");  // the peer does not know its NIC's speed
  EXPECT_EQ(first().declined, 1U);
  peer_budget_.set_nic(1e12, 0);
  EXPECT_TRUE(budget_.allows(env().clock->since_start()));
  EXPECT_TRUE(peer_budget_.allows(env().clock->since_start()));
}

TEST_F(BandwidthProbeTest, PeerThatIsAwayCounts) {
  choose("127.0.0.3");
  const BandwidthReport report = first();
  EXPECT_EQ(report.failed, 1U);
  EXPECT_EQ(report.coverage.missing, 1U);
}

TEST_F(BandwidthProbeTest, OwnNicInUseIsLeftAlone) {
  budget_.set_nic(1e9, 1e9);
  choose("127.0.0.2");
  absl::SleepFor(absl::Milliseconds(100));
  const BandwidthReport report = probe_->report();
  EXPECT_EQ(report.measured + report.declined + report.failed, 0U);
}

}  // namespace
}  // namespace gleaner::probe
