#include "common/base/utf8.h"

#include <gtest/gtest.h>

namespace gleaner {
namespace {

TEST(Shortened, SaysHowMuchIsLeftOut) {
  EXPECT_EQ(shortened("short", 5), "short");
  EXPECT_EQ(shortened(std::string(99, 'a'), 60), std::string(36, 'a') + "... (63 more characters)");
  EXPECT_EQ(shortened(std::string(40000, 'a'), 1000), std::string(972, 'a') + "... (39,028 more characters)");
  EXPECT_EQ(shortened(std::string(100, 'a'), 32), std::string(32, 'a')) << "there is no room for more";
  EXPECT_EQ(shortened("abc", 0), "");
}

TEST(Shortened, CutsBetweenCharacters) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 2 == 0 ? "\xf0\x9f\x9a\x80" : "\xc3\xa9";
  for (size_t most = 0; most <= text.size(); ++most) {
    const std::string cut = shortened(text, most);
    EXPECT_LE(cut.size(), most);
    EXPECT_TRUE(is_utf8(cut)) << most;
    EXPECT_EQ(shortened(cut, most), cut) << "a second call changes nothing";
  }
  EXPECT_EQ(shortened(text, 100).substr(72), "... (376 more characters)");
}

TEST(Shortened, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(shortened("caf\xe9", 100), "caf\xef\xbf\xbd");
  EXPECT_EQ(shortened(std::string(500, '\xff'), 120).substr(93), "... (469 more characters)");
}

}  // namespace
}  // namespace gleaner
