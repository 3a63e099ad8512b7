#include "coordinator/service/unauthenticated_streams.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace gleaner::coordinator {
namespace {

TEST(UnauthenticatedStreams, AHostIsAnIpv4AddressOrAPrefixOfIpv6) {
  EXPECT_EQ(host_of_peer("ipv4:10.0.0.7:51234"), "10.0.0.7");
  EXPECT_EQ(host_of_peer("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:51234"), "2001:db8:1:2::/64");
  EXPECT_EQ(host_of_peer("ipv6:[2001:db8:1:2:ffff::1]:1"), "2001:db8:1:2::/64");
  EXPECT_EQ(host_of_peer("ipv6:%5Bfe80::1%25eth0%5D:1"), "fe80::/64");
  EXPECT_EQ(host_of_peer("ipv6:%5B::1%5D:1"), "::/64");
  EXPECT_EQ(host_of_peer("ipv6:%5B::ffff:10.0.0.7%5D:1"), "10.0.0.7");
  EXPECT_EQ(host_of_peer("unix:/run/gleaner"), "unix:/run/gleaner");
}

TEST(UnauthenticatedStreams, OneMachineWithManyIpv6AddressesIsOneHost) {
  const auto streams = std::make_shared<UnauthenticatedStreams>(100, 2);
  std::vector<UnauthenticatedStreams::Slot> slots;
  for (int i = 0; i < 3; ++i) slots.push_back(streams->admit(absl::StrCat("ipv6:%5B2001:db8::", i, "%5D:1")));
  EXPECT_TRUE(slots[0].is_admitted());
  EXPECT_TRUE(slots[1].is_admitted());
  EXPECT_FALSE(slots[2].is_admitted()) << "the third stream of one /64 prefix";
  EXPECT_TRUE(streams->admit("ipv6:%5B2001:db8:0:1::1%5D:1").is_admitted()) << "another prefix";
  slots.erase(slots.begin());
  EXPECT_TRUE(streams->admit("ipv6:%5B2001:db8::9%5D:1").is_admitted()) << "a slot is free again";
}

}  // namespace
}  // namespace gleaner::coordinator
