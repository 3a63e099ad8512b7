#include "common/transport/any/attempts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::transport::any {
namespace {

const std::vector<Endpoint> kOrder = {{Kind::kShm, "host", {"/s.sock", 0}}, {Kind::kTcp, "", {"10.0.0.1", 7000}}};

TEST(Attempts, FollowTheOrderAndShareTheTimeThatIsLeft) {
  Attempts attempts(kOrder, absl::Seconds(10));
  EXPECT_EQ(attempts.next()->kind, Kind::kShm);
  EXPECT_EQ(attempts.timeout(absl::ZeroDuration()), absl::Seconds(5));
  attempts.fail(absl::UnavailableError("no process listens"));
  EXPECT_EQ(attempts.next()->kind, Kind::kTcp);
  EXPECT_EQ(attempts.timeout(absl::Seconds(1)), absl::Seconds(9)) << "the last attempt gets all the remaining time";
  EXPECT_EQ(attempts.next(), nullptr);
}

TEST(Attempts, ReportAllFailuresWithTheCodeOfTheLast) {
  Attempts attempts(kOrder, absl::Seconds(10));
  attempts.next();
  attempts.fail(absl::UnavailableError("no process listens"));
  EXPECT_EQ(attempts.all_failed(), absl::UnavailableError("no process listens"))
      << "a single failure is returned unchanged";
  EXPECT_TRUE(attempts.has_failed(Kind::kShm));
  EXPECT_FALSE(attempts.has_failed(Kind::kTcp));
  attempts.next();
  attempts.fail(absl::DeadlineExceededError("no answer"));
  EXPECT_EQ(attempts.all_failed(), absl::DeadlineExceededError("shm: no process listens; tcp: no answer"));
  ASSERT_EQ(attempts.failures().size(), 2u);
  EXPECT_EQ(attempts.failures()[1].kind, Kind::kTcp);
}

TEST(Attempts, AcceptedConnectionHasNone) {
  Attempts attempts;
  EXPECT_EQ(attempts.next(), nullptr);
  EXPECT_TRUE(attempts.failures().empty());
}

}  // namespace
}  // namespace gleaner::transport::any
