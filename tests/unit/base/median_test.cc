#include "common/base/median.h"

#include <gtest/gtest.h>

namespace gleaner {
namespace {

TEST(UpperMedian, IsOneOfTheValues) {
  EXPECT_EQ(upper_median<int>({3, 1, 2}), 2);
  EXPECT_EQ(upper_median<double>({4, 1, 3, 2}), 3) << "the greater one of the middle two";
  EXPECT_EQ(upper_median<double>({}), 0);
}

}  // namespace
}  // namespace gleaner
