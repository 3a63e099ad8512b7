#include "common/base/listening.h"

#include <gmock/gmock.h>

#include "tests/loopback6.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(Listening, TakesNumbersAndNamesAndAnyPort) {
  for (const char* host : {"127.0.0.1", "localhost", "0.0.0.0"}) {
    const auto socket = listen_on({host, 0});
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_NE(local_address(*socket)->port, 0) << host;
  }
}

TEST(Listening, TakesIPv6) {
  SKIP_WITHOUT_LOOPBACK6();
  for (const char* host : {"::1", "::"}) {
    const auto socket = listen_on({host, 0});
    ASSERT_TRUE(socket.ok()) << socket.status();
    EXPECT_EQ(local_address(*socket)->host, host);
  }
}

TEST(Listening, ErrorsNameTheReason) {
  const auto first = listen_on({"127.0.0.1", 0});
  const absl::Status used = listen_on({"127.0.0.1", local_address(*first)->port}).status();
  EXPECT_TRUE(absl::IsAlreadyExists(used));
  EXPECT_THAT(std::string(used.message()), HasSubstr("the port is in use"));
  const absl::Status foreign = listen_on({"192.0.2.1", 0}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(foreign));
  EXPECT_THAT(std::string(foreign.message()), AllOf(HasSubstr("192.0.2.1:0"), HasSubstr("no such address")));
  EXPECT_THAT(std::string(listen_on({"no-such-name.invalid", 0}).status().message()),
              HasSubstr("can't find host 'no-such-name.invalid'"));
}

}  // namespace
}  // namespace gleaner
