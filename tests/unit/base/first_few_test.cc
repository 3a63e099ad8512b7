#include "common/base/first_few.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace gleaner {
namespace {

TEST(FirstFew, JoinsAllWithoutMore) {
  EXPECT_EQ(first_few(std::vector<std::string>{}), "");
  EXPECT_EQ(first_few(std::vector<std::string>{"a", "b"}, 2, "; "), "a; b");
}

TEST(FirstFew, CountsTheRest) {
  EXPECT_EQ(first_few(std::vector<std::string>{"a", "b", "c"}, 2), "a, b and 1 more");
  EXPECT_EQ(first_few(std::vector<uint32_t>(400, 7)), "7, 7, 7, 7, 7, 7, 7, 7, 7, 7 and 390 more");
}

}  // namespace
}  // namespace gleaner
