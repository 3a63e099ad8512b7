#include "operator/coordinator/strangers.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace gleaner::coordinator {
namespace {

TEST(Strangers, AHostIsAnIpv4AddressOrAPrefixOfIpv6) {
  EXPECT_EQ(host_of_peer("ipv4:10.0.0.7:51234"), "10.0.0.7");
  EXPECT_EQ(host_of_peer("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:51234"), "2001:db8:1:2::/64");
  EXPECT_EQ(host_of_peer("ipv6:[2001:db8:1:2:ffff::1]:1"), "2001:db8:1:2::/64");
  EXPECT_EQ(host_of_peer("ipv6:%5Bfe80::1%25eth0%5D:1"), "fe80::/64");
  EXPECT_EQ(host_of_peer("ipv6:%5B::1%5D:1"), "::/64");
  EXPECT_EQ(host_of_peer("ipv6:%5B::ffff:10.0.0.7%5D:1"), "10.0.0.7");
  EXPECT_EQ(host_of_peer("unix:/run/gleaner"), "unix:/run/gleaner");
}

TEST(Strangers, OneMachineWithManyIpv6AddressesIsOneHost) {
  const auto strangers = std::make_shared<Strangers>(100, 2);
  std::vector<Strangers::Place> places;
  for (int i = 0; i < 3; ++i) places.push_back(strangers->enter(absl::StrCat("ipv6:%5B2001:db8::", i, "%5D:1")));
  EXPECT_TRUE(places[0].taken());
  EXPECT_TRUE(places[1].taken());
  EXPECT_FALSE(places[2].taken()) << "the third of one /64 prefix";
  EXPECT_TRUE(strangers->enter("ipv6:%5B2001:db8:0:1::1%5D:1").taken()) << "another prefix";
  places.erase(places.begin());
  EXPECT_TRUE(strangers->enter("ipv6:%5B2001:db8::9%5D:1").taken()) << "a place was given back";
}

}  // namespace
}  // namespace gleaner::coordinator
