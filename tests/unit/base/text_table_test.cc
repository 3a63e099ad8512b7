#include "common/base/text_table.h"

#include "gtest/gtest.h"

namespace gleaner {
namespace {

TEST(TextTable, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(align({{"a", "b", "c"}, {"long", "22", "1"}}, "lrr"), "a      b  c\nlong  22  1\n");
  EXPECT_EQ(align({{"a", "b", "c"}, {"long", "22", "1"}}, "lr"), "a      b  c\nlong  22  1\n");
}

TEST(TextTable, LastCellOnTheLeftHasNoSpacesAfterIt) {
  EXPECT_EQ(align({{"a", "b"}, {"long", "22"}}, "l"), "a     b\nlong  22\n");
}

TEST(TextTable, RowsMayBeShorter) { EXPECT_EQ(align({{"a"}, {"b", "c"}}, "lr"), "a\nb  c\n"); }

TEST(Counted, HasAPlural) {
  EXPECT_EQ(counted(1, "worker"), "1 worker");
  EXPECT_EQ(counted(0, "worker"), "0 workers");
  EXPECT_EQ(counted(2, "switch", "switches"), "2 switches");
}

}  // namespace
}  // namespace gleaner
