#include "common/base/own_network.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace gleaner {
namespace {

TEST(OwnNetwork, LoopbackHosts) {
  for (const char* host : {"127.0.0.1", "127.0.1.1", "127.255.0.9", "::1", "::ffff:127.0.0.1", "localhost",
                           "LocalHost.", "ip6-localhost", "a.localhost"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"10.0.0.1", "128.0.0.1", "fe80::1", "::", "0.0.0.0", "localhost.example.org", "gpu0", ""}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(OwnNetwork, UnspecifiedHosts) {
  for (const char* host : {"0.0.0.0", "::", "::ffff:0.0.0.0", "0:0:0:0:0:0:0:0"}) {
    EXPECT_TRUE(is_unspecified(host)) << host;
  }
  for (const char* host : {"127.0.0.1", "::1", "10.0.0.0", "localhost", ""}) EXPECT_FALSE(is_unspecified(host)) << host;
}

TEST(OwnNetwork, SourceOfTheRouteToALoopbackAddressIsLoopback) {
  const auto source = source_host({"127.0.0.1", 7000});
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ(*source, "127.0.0.1");
}

TEST(OwnNetwork, SourceForAHostThatDoesNotExist) { EXPECT_FALSE(source_host({"no.such.host.invalid", 7000}).ok()); }

TEST(OwnNetwork, HostNameIsTheKernels) {
  std::string kernels;
  std::getline(std::ifstream("/proc/sys/kernel/hostname"), kernels);
  EXPECT_EQ(host_name(), kernels);
}

TEST(OwnNetwork, IdIsTheSameEachTime) { EXPECT_EQ(network_id(), network_id()); }

}  // namespace
}  // namespace gleaner
