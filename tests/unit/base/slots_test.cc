// Tests of Slots.
#include "common/base/slots.h"

#include <gtest/gtest.h>

#include <string>

namespace gleaner::testing {
namespace {

TEST(Slots, ReusesSlotsWithTheirValues) {
  Slots<std::string> slots;
  const uint32_t first = slots.take("blank");
  const uint32_t second = slots.take("blank");
  EXPECT_NE(first, second);
  EXPECT_EQ(slots[second], "blank");
  slots[first] = "used";
  slots.give_back(first);
  EXPECT_EQ(slots.in_use(), 1u);
  EXPECT_EQ(slots.take("blank"), first);
  EXPECT_EQ(slots[first], "used");
  EXPECT_EQ(slots.size(), 2u);
}

TEST(Slots, KeepsReferencesWhileItGrows) {
  Slots<int> slots;
  int& first = slots[slots.take(7)];
  for (int i = 0; i < 1000; ++i) slots.take();
  EXPECT_EQ(&first, &slots[0]);
  EXPECT_EQ(first, 7);
}

}  // namespace
}  // namespace gleaner::testing
