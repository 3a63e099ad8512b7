// What is known of memory that push_pulls come from.
#include "comm-lib/runtime/lasting_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace gleaner::runtime {
namespace {

class LastingMemoryTest : public testing::Test {
 protected:
  MutableBytes at(size_t offset, size_t bytes) { return MutableBytes(memory_).subspan(offset, bytes); }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
  LastingMemory lasting_;
};

TEST_F(LastingMemoryTest, WhatLiesInItIsAPartOfIt) {
  ASSERT_TRUE(lasting_.add(at(100, 100)).ok());
  ASSERT_TRUE(lasting_.add(at(200, 100)).ok());
  for (const auto& [offset, bytes, known] : std::vector<std::tuple<size_t, size_t, bool>>{{100, 100, true},
                                                                                          {120, 10, true},
                                                                                          {199, 1, true},
                                                                                          {200, 100, true},
                                                                                          {99, 10, false},
                                                                                          {150, 100, false},
                                                                                          {299, 2, false},
                                                                                          {0, 10, false},
                                                                                          {300, 1, false}}) {
    const Buffer buffer = lasting_.borrow(at(offset, bytes));
    EXPECT_EQ(buffer.is_lasting(), known) << offset;
    EXPECT_EQ(lasting_.covers(at(offset, bytes)), known) << offset;
    EXPECT_EQ(buffer.bytes().data(), memory_.data() + offset);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_TRUE(buffer.sole_owner());
  }
}

TEST_F(LastingMemoryTest, NoByteIsKnownTwice) {
  ASSERT_TRUE(lasting_.add(at(100, 100)).ok());
  for (const auto& [offset, bytes] :
       std::vector<std::pair<size_t, size_t>>{{100, 100}, {50, 51}, {199, 10}, {120, 10}, {0, 1000}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(lasting_.add(at(offset, bytes)))) << offset;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(lasting_.add({})));
  EXPECT_TRUE(lasting_.add(at(0, 100)).ok());
  EXPECT_TRUE(lasting_.add(at(200, 1)).ok());
}

TEST_F(LastingMemoryTest, ItStaysWhileAPartIsInUse) {
  ASSERT_TRUE(lasting_.add(at(100, 100)).ok());
  {
    const Buffer part = lasting_.borrow(at(150, 10));
    EXPECT_TRUE(absl::IsUnavailable(lasting_.remove(memory_.data() + 100)));
  }
  EXPECT_TRUE(absl::IsNotFound(lasting_.remove(memory_.data() + 150)));
  EXPECT_TRUE(lasting_.remove(memory_.data() + 100).ok());
  EXPECT_TRUE(absl::IsNotFound(lasting_.remove(memory_.data() + 100)));
  EXPECT_FALSE(lasting_.borrow(at(150, 10)).is_lasting());
}

}  // namespace
}  // namespace gleaner::runtime
