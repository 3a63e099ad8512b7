// Tests of RegisteredMemory, which knows the memory that users registered.
#include "comm-lib/pipeline/registered_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace gleaner::pipeline {
namespace {

class RegisteredMemoryTest : public testing::Test {
 protected:
  MutableBytes at(size_t offset, size_t bytes) { return MutableBytes(memory_).subspan(offset, bytes); }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
  RegisteredMemory registered_;
};

TEST_F(RegisteredMemoryTest, MemoryWithinARegistrationIsAPartOfIt) {
  ASSERT_TRUE(registered_.add(at(100, 100)).ok());
  ASSERT_TRUE(registered_.add(at(200, 100)).ok());
  for (const auto& [offset, bytes, known] : std::vector<std::tuple<size_t, size_t, bool>>{{100, 100, true},
                                                                                          {120, 10, true},
                                                                                          {199, 1, true},
                                                                                          {200, 100, true},
                                                                                          {99, 10, false},
                                                                                          {150, 100, false},
                                                                                          {299, 2, false},
                                                                                          {0, 10, false},
                                                                                          {300, 1, false}}) {
    const Buffer buffer = registered_.borrow(at(offset, bytes));
    EXPECT_EQ(buffer.is_lasting(), known) << offset;
    EXPECT_EQ(registered_.covers(at(offset, bytes)), known) << offset;
    EXPECT_EQ(buffer.bytes().data(), memory_.data() + offset);
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_TRUE(buffer.sole_owner());
  }
}

TEST_F(RegisteredMemoryTest, NoByteIsRegisteredTwice) {
  ASSERT_TRUE(registered_.add(at(100, 100)).ok());
  for (const auto& [offset, bytes] :
       std::vector<std::pair<size_t, size_t>>{{100, 100}, {50, 51}, {199, 10}, {120, 10}, {0, 1000}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(registered_.add(at(offset, bytes)))) << offset;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(registered_.add({})));
  EXPECT_TRUE(registered_.add(at(0, 100)).ok());
  EXPECT_TRUE(registered_.add(at(200, 1)).ok());
}

TEST_F(RegisteredMemoryTest, ARegistrationStaysWhileAPartIsInUse) {
  ASSERT_TRUE(registered_.add(at(100, 100)).ok());
  {
    const Buffer part = registered_.borrow(at(150, 10));
    EXPECT_TRUE(absl::IsUnavailable(registered_.remove(memory_.data() + 100)));
  }
  EXPECT_TRUE(absl::IsNotFound(registered_.remove(memory_.data() + 150)));
  EXPECT_TRUE(registered_.remove(memory_.data() + 100).ok());
  EXPECT_TRUE(absl::IsNotFound(registered_.remove(memory_.data() + 100)));
  EXPECT_FALSE(registered_.borrow(at(150, 10)).is_lasting());
}

}  // namespace
}  // namespace gleaner::pipeline
