#include "common/base/median.h"

#include <gtest/gtest.h>

namespace gleaner {
namespace {

TEST(UpperMedian, IsOneOfTheValues) {
  EXPECT_EQ(upper_median<int>({3, 1, 2}), 2);
  EXPECT_EQ(upper_median<double>({4, 1, 3, 2}), 3) << "the greater one of the middle two";
  EXPECT_EQ(upper_median<double>({}), 0);
}

TEST(LowerQuartile, HasAQuarterBeforeIt) {
  EXPECT_EQ(lower_quartile<int>({8, 1, 7, 2, 6, 3, 5, 4}), 3);
  EXPECT_EQ(lower_quartile<int>({3, 1, 2}), 1);
  EXPECT_EQ(lower_quartile<double>({}), 0);
}

}  // namespace
}  // namespace gleaner
