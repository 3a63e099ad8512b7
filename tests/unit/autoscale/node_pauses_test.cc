// Tests of the pauses of nodes that had to give up a summer.
#include "operator/autoscale/node_pauses.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace gleaner::autoscale {
namespace {

constexpr absl::Duration kFirst = absl::Seconds(30);

TEST(NodePauses, LastForTheirLength) {
  NodePauses pauses;
  EXPECT_FALSE(pauses.is_paused("a", absl::ZeroDuration()));
  pauses.begin("a", kFirst, absl::ZeroDuration());
  EXPECT_TRUE(pauses.is_paused("a", kFirst - absl::Seconds(1)));
  EXPECT_FALSE(pauses.is_paused("a", kFirst));
  EXPECT_FALSE(pauses.is_paused("b", absl::ZeroDuration()));
}

TEST(NodePauses, DoubleUpToLongest) {
  NodePauses pauses;
  absl::Duration now, length = kFirst;
  for (int i = 0; i < 10; ++i) {
    pauses.begin("a", kFirst, now);
    now += length;
    EXPECT_TRUE(pauses.is_paused("a", now - absl::Seconds(1))) << i;
    EXPECT_FALSE(pauses.is_paused("a", now)) << i;
    length = std::min(2 * length, NodePauses::kLongest);
  }
}

TEST(NodePauses, BeginAnewAfterLongTime) {
  NodePauses pauses;
  pauses.begin_longest("a", absl::ZeroDuration());
  EXPECT_TRUE(pauses.is_paused("a", NodePauses::kLongest - absl::Seconds(1)));
  const absl::Duration later = 2 * NodePauses::kLongest;
  pauses.begin("a", kFirst, later);
  EXPECT_TRUE(pauses.is_paused("a", later));
  EXPECT_FALSE(pauses.is_paused("a", later + kFirst));
}

TEST(NodePauses, IgnoreUnknownNodes) {
  NodePauses pauses;
  pauses.begin("", kFirst, absl::ZeroDuration());
  EXPECT_FALSE(pauses.is_paused("", absl::ZeroDuration()));
}

}  // namespace
}  // namespace gleaner::autoscale
