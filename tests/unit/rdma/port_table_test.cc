#include "common/transport/rdma/port_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/rdma/addresses.h"

namespace gleaner::transport::rdma {
namespace {

using ::testing::ElementsAre;

constexpr absl::Duration kNow = absl::Seconds(100);
const std::string kPeer = "10.0.0.9:7000";

Port port(const std::string& device, const std::string& ip, uint64_t bits_per_second = 100) {
  Port made;
  made.device = device;
  made.address = address(ip);
  made.network_bits = 24;
  made.bits_per_second = bits_per_second;
  return made;
}

class PortTableTest : public ::testing::Test {
 protected:
  // Two ports in the peer's network, of which the second is far from memory, and one in another network.
  PortTable make(bool named) {
    return PortTable({port("near", "10.0.0.1"), port("far", "10.0.0.2"), port("other", "10.0.1.1")}, {1, 2, 1}, named,
                     [this](const Port& one) { return !down_.contains(one.device); });
  }
  std::vector<int> to_peer(const PortTable& table, const std::vector<size_t>& connections = {0, 0, 0},
                           absl::Duration now = kNow) {
    return table.ports_to(address("10.0.0.9"), kPeer, connections, now);
  }
  std::set<std::string> down_;
};

TEST_F(PortTableTest, TriesNearestPortThenRoute) {
  const PortTable table = make(false);
  EXPECT_THAT(to_peer(table), ElementsAre(0, PortTable::kByRoute));
  EXPECT_THAT(to_peer(table, {9, 0, 0}), ElementsAre(0, PortTable::kByRoute)) << "nearness counts before load";
  EXPECT_THAT(table.ports_to(address("10.0.7.1"), kPeer, {0, 0, 0}, kNow), ElementsAre(PortTable::kByRoute))
      << "no port is in the peer's network";
}

TEST_F(PortTableTest, RoutesReachThisMachine) {
  EXPECT_THAT(make(false).ports_to(address("10.0.0.2"), kPeer, {0, 0, 0}, kNow), ElementsAre(PortTable::kByRoute));
}

TEST_F(PortTableTest, RoutesChooseASinglePort) {
  const PortTable table({port("only", "10.0.0.1")}, {1}, false, [](const Port&) { return true; });
  EXPECT_THAT(table.ports_to(address("10.0.0.9"), kPeer, {0}, kNow), ElementsAre(PortTable::kByRoute));
}

TEST_F(PortTableTest, TriesClosestNamedPortFirst) {
  const PortTable table = make(true);
  EXPECT_THAT(to_peer(table), ElementsAre(0, 1, 2));
  EXPECT_THAT(table.ports_to(address("10.0.1.9"), kPeer, {0, 0, 0}, kNow), ElementsAre(2, 0, 1));
  sockaddr_storage six{};
  six.ss_family = AF_INET6;
  EXPECT_THAT(table.ports_to(six, kPeer, {0, 0, 0}, kNow), ElementsAre(PortTable::kByRoute))
      << "the ports have no IPv6 address";
}

TEST_F(PortTableTest, SpreadsConnectionsByBandwidth) {
  const PortTable table({port("a", "10.0.0.1", 100), port("b", "10.0.0.2", 200)}, {1, 1}, true,
                        [](const Port&) { return true; });
  EXPECT_THAT(to_peer(table, {0, 0}), ElementsAre(1, 0));
  EXPECT_THAT(to_peer(table, {0, 2}), ElementsAre(0, 1)) << "1 / 100 is less than 3 / 200";
}

TEST_F(PortTableTest, RanksDownOrAvoidedLast) {
  PortTable table = make(true);
  down_ = {"near"};
  EXPECT_THAT(to_peer(table), ElementsAre(1, 2, 0));
  EXPECT_FALSE(table.is_usable(0));
  down_.clear();
  table.avoid(1, kPeer, kNow);
  EXPECT_THAT(to_peer(table), ElementsAre(0, 2, 1));
  EXPECT_TRUE(table.is_avoided(1, kPeer, kNow + absl::Seconds(59)));
  EXPECT_FALSE(table.is_avoided(1, "another", kNow));
  EXPECT_FALSE(table.is_avoided(1, kPeer, kNow + absl::Seconds(60))) << "a port is avoided for a minute";
}

TEST_F(PortTableTest, FarPortsMustBeNamed) {
  EXPECT_EQ(make(false).usable_bandwidth(0), 100u);
  EXPECT_EQ(make(false).usable_bandwidth(1), 0u);
  EXPECT_EQ(make(true).usable_bandwidth(1), 50u) << "a port with twice the cost counts with half its bandwidth";
  EXPECT_EQ(make(true).path_end(1).bits_per_second, 50u);
}

TEST_F(PortTableTest, FindsPortsOfAllowedDevices) {
  EXPECT_EQ(make(false).find("far", 1), 1);
  EXPECT_EQ(make(false).find("far", 2), -1);
  EXPECT_TRUE(make(false).allows("mlx5_9"));
  EXPECT_FALSE(make(true).allows("mlx5_9"));
  EXPECT_TRUE(make(true).allows("other"));
}

}  // namespace
}  // namespace gleaner::transport::rdma
