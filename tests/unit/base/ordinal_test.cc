#include "common/base/ordinal.h"

#include <gtest/gtest.h>

namespace gleaner {
namespace {

TEST(Ordinal, CountsFromOne) {
  EXPECT_EQ(ordinal(0), "1st");
  EXPECT_EQ(ordinal(1), "2nd");
  EXPECT_EQ(ordinal(2), "3rd");
  EXPECT_EQ(ordinal(3), "4th");
  EXPECT_EQ(ordinal(10), "11th");
  EXPECT_EQ(ordinal(12), "13th");
  EXPECT_EQ(ordinal(20), "21st");
  EXPECT_EQ(ordinal(110), "111th");
  EXPECT_EQ(ordinal(121), "122nd");
}

}  // namespace
}  // namespace gleaner
