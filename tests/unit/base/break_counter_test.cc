#include "common/base/break_counter.h"

#include <gtest/gtest.h>

#include <vector>

namespace gleaner {
namespace {

TEST(BreakCounter, WarnsOfManyWithinTheWindowAndThenSeldom) {
  BreakCounter breaks;
  absl::Duration now = absl::Seconds(100);
  std::vector<uint32_t> warned;
  for (int i = 0; i < 100; ++i) {
    const uint32_t count = breaks.on_break(now += absl::Milliseconds(10));
    if (count > 0) warned.push_back(count);
  }
  EXPECT_EQ(warned, (std::vector<uint32_t>{4, 16, 64}));
}

TEST(BreakCounter, DoesNotWarnOfRareBreaks) {
  BreakCounter breaks;
  absl::Duration now = absl::Seconds(100);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(breaks.on_break(now += absl::Seconds(4)), 0u);
}

}  // namespace
}  // namespace gleaner
