#include "common/base/address.h"

#include <gmock/gmock.h>

namespace gleaner {
namespace {

TEST(AddressTest, ParsesNamesAndNumbers) {
  const auto parsed = [](absl::string_view text) { return Address::parse(text).value_or(Address{"bad", 1}); };
  EXPECT_EQ(parsed("127.0.0.1:7000"), (Address{"127.0.0.1", 7000}));
  EXPECT_EQ(parsed("worker-0.job.svc:65535"), (Address{"worker-0.job.svc", 65535}));
  EXPECT_EQ(parsed("[::1]:7000"), (Address{"::1", 7000}));
  EXPECT_EQ(parsed("[fe80::1%eth0]:0"), (Address{"fe80::1%eth0", 0}));
}

TEST(AddressTest, RoundTrips) {
  for (const char* text : {"127.0.0.1:7000", "localhost:0", "[2001:db8::2]:443"}) {
    const auto address = Address::parse(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->to_string(), text);
  }
}

TEST(AddressTest, ErrorsNameTheExpectedFormat) {
  for (const char* text : {"",
                           ":",
                           "host",
                           "host:",
                           ":7000",
                           "host:65536",
                           "host:-1",
                           "host:+1",
                           "host: 1",
                           "host:1x",
                           "::1:7000",
                           "[::1]",
                           "[::1:7000",
                           "[]:7000",
                           "[:7000",
                           "[host]:7000",
                           "ho st:1",
                           "a]:1",
                           "host:99999999999",
                           "host\n:1"}) {
    const auto parsed = Address::parse(text);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(parsed.status().message()), testing::HasSubstr("HOST:PORT")) << text;
  }
  EXPECT_FALSE(Address::parse(std::string(300, 'h') + ":1").ok());
}

TEST(AddressTest, LoopbackHosts) {
  for (const char* host : {"127.0.0.1", "127.0.1.1", "127.255.0.9", "::1", "::ffff:127.0.0.1", "localhost",
                           "LocalHost.", "ip6-localhost", "a.localhost"}) {
    EXPECT_TRUE(is_loopback(host)) << host;
  }
  for (const char* host : {"10.0.0.1", "128.0.0.1", "fe80::1", "::", "0.0.0.0", "localhost.example.org", "gpu0", ""}) {
    EXPECT_FALSE(is_loopback(host)) << host;
  }
}

TEST(AddressTest, UnspecifiedHosts) {
  for (const char* host : {"0.0.0.0", "::", "::ffff:0.0.0.0", "0:0:0:0:0:0:0:0"}) {
    EXPECT_TRUE(is_unspecified(host)) << host;
  }
  for (const char* host : {"127.0.0.1", "::1", "10.0.0.0", "localhost", ""}) EXPECT_FALSE(is_unspecified(host)) << host;
}

}  // namespace
}  // namespace gleaner
