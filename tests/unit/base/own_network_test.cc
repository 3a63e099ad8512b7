#include "common/base/own_network.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace gleaner {
namespace {

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
