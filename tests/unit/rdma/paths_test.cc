#include "common/transport/rdma/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "tests/unit/rdma/addresses.h"

namespace gleaner::transport::rdma {
namespace {

using ::testing::ElementsAre;
using Made = std::tuple<size_t, size_t, uint64_t>;

PathEnd end(const std::string& text, uint64_t rate = 100, int bits = 24) {
  return {.address = address(text), .network_bits = bits, .is_ethernet = true, .bits_per_second = rate};
}

std::vector<Made> pairs(const std::vector<PathEnd>& ours, const std::vector<PathEnd>& theirs, size_t our_main = 0,
                        size_t their_main = 0, size_t most = 16) {
  std::vector<Made> made;
  for (const Path& path : pair_ports(ours, our_main, theirs, their_main, most)) {
    made.emplace_back(path.ours, path.theirs, path.bits_per_second);
  }
  return made;
}

TEST(Closeness, CountsCommonPrefixBits) {
  EXPECT_EQ(closeness(end("10.0.1.1"), address("10.0.1.200")), 24);
  EXPECT_EQ(closeness(end("10.0.1.1"), address("10.0.1.3")), 24);
  EXPECT_EQ(closeness(end("10.0.1.1", 1, 0), address("10.0.1.3")), 30);
  EXPECT_EQ(closeness(end("10.0.1.1"), address("10.0.3.1")), 22);
  EXPECT_EQ(closeness(end("10.0.1.1"), address("fd00::1")), -1);
  EXPECT_EQ(closeness(end("fd00::1", 1, 64), address("fd00::2:1")), 64);
  EXPECT_EQ(closeness(end("10.0.1.1"), sockaddr_storage{}), -1);
  EXPECT_EQ(closeness({}, sockaddr_storage{}), -1);
  EXPECT_TRUE(are_the_same(address("10.0.1.1"), address("10.0.1.1")));
  EXPECT_FALSE(are_the_same(address("10.0.1.1"), address("10.0.1.3")));
  EXPECT_FALSE(are_the_same(address("10.0.1.1"), address("fd00::1")));
  EXPECT_FALSE(are_the_same({}, {}));
  EXPECT_TRUE(is_in_network(end("10.0.1.1"), address("10.0.1.3")));
  EXPECT_FALSE(is_in_network(end("10.0.1.1"), address("10.0.3.1")));
  EXPECT_FALSE(is_in_network(end("10.0.1.1", 1, 0), address("10.0.1.3"))) << "not known";
}

TEST(PairPorts, SinglePortsNeedNoLanes) {
  EXPECT_THAT(pairs({end("10.0.0.1", 200)}, {end("10.0.0.2")}), ElementsAre(Made{0, 0, 100}));
}

TEST(PairPorts, PairsPortsOfOneNetwork) {
  const std::vector<PathEnd> ours = {end("10.0.0.1"), end("10.0.1.1"), end("10.0.2.1")};
  const std::vector<PathEnd> theirs = {end("10.0.2.2"), end("10.0.0.2"), end("10.0.1.2")};
  EXPECT_THAT(pairs(ours, theirs, 0, 1), ElementsAre(Made{0, 1, 100}, Made{1, 2, 100}, Made{2, 0, 100}));
}

TEST(PairPorts, PairsEqualPlacesWithinNetwork) {
  const std::vector<PathEnd> ours = {end("10.0.0.1"), end("10.0.0.2"), end("10.0.0.3")};
  const std::vector<PathEnd> theirs = {end("10.0.0.9"), end("10.0.0.8"), end("10.0.0.7")};
  EXPECT_THAT(pairs(ours, theirs, 2, 2), ElementsAre(Made{2, 2, 100}, Made{0, 0, 100}, Made{1, 1, 100}));
}

TEST(PairPorts, FastPortTakesSeveralSlow) {
  const std::vector<PathEnd> slow = {end("10.0.0.1"), end("10.0.0.2"), end("10.0.0.3")};
  EXPECT_THAT(pairs(slow, {end("10.0.0.9", 250)}), ElementsAre(Made{0, 0, 100}, Made{1, 0, 100}, Made{2, 0, 50}));
  EXPECT_THAT(pairs({end("10.0.0.9", 250)}, slow), ElementsAre(Made{0, 0, 100}, Made{0, 1, 100}, Made{0, 2, 50}));
  EXPECT_THAT(pairs(slow, {end("10.0.0.9", 100)}), ElementsAre(Made{0, 0, 100}));
}

TEST(PairPorts, SkipsPortsThatCannotConnect) {
  std::vector<PathEnd> ours = {end("10.0.0.1"), end("fd00::1"), end("10.0.0.2"), end("10.0.0.4", 0)};
  ours[2].is_ethernet = false;
  std::vector<PathEnd> theirs = {end("10.0.0.9"), end("10.0.0.8"), end("10.0.0.7")};
  theirs.push_back({.address = {}, .bits_per_second = 100});
  EXPECT_THAT(pairs(ours, theirs), ElementsAre(Made{0, 0, 100}));
}

TEST(PairPorts, NeverPairsPortWithItself) {
  const std::vector<PathEnd> both = {end("10.0.0.1"), end("10.0.1.1")};
  EXPECT_THAT(pairs(both, both), ElementsAre(Made{0, 0, 100}));
}

TEST(PairPorts, FarMainPortCarriesNothing) {
  EXPECT_THAT(pairs({end("10.0.0.1", 0), end("10.0.1.1")}, {end("10.0.0.2"), end("10.0.1.2")}),
              ElementsAre(Made{0, 0, 0}, Made{1, 1, 100}));
}

TEST(PairPorts, PairsUpToTheLimit) {
  std::vector<PathEnd> many;
  for (int i = 1; i <= 20; ++i) many.push_back(end("10.0." + std::to_string(i) + ".1"));
  std::vector<PathEnd> others;
  for (int i = 1; i <= 20; ++i) others.push_back(end("10.0." + std::to_string(i) + ".2"));
  EXPECT_EQ(pairs(many, others).size(), 16u);
}

}  // namespace
}  // namespace gleaner::transport::rdma
