#include "cli/launcher/marked_lines.h"

#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace gleaner::launcher {
namespace {

// Returns the lines of `text`, which comes in parts of this size.
std::vector<std::string> lines_of(const std::string& text, size_t size) {
  MarkedLines lines("marker");
  std::vector<std::string> found;
  for (size_t begin = 0; begin < text.size(); begin += size) {
    lines.add(text.substr(begin, size));
    while (std::optional<std::string> line = lines.next()) found.push_back(*std::move(line));
  }
  return found;
}

TEST(MarkedLines, DropGreetings) {
  const std::vector<std::string> expected = {"a", "", "{\"b\": 1}"};
  for (const std::string& greeting :
       {std::string(), std::string("Welcome\n"), std::string("Welcome to "), std::string("mar"), std::string("marker "),
        std::string("markermarker"), std::string(100 << 10, 'x'), std::string("marker\r\n")}) {
    for (const size_t size : {1, 3, 7, 1 << 20}) {
      if (size == 1 && greeting.size() > 1000) continue;
      EXPECT_EQ(lines_of(absl::StrCat(greeting, "marker\na\n\n{\"b\": 1}\nrest"), size), expected) << greeting << size;
    }
  }
}

TEST(MarkedLines, NoMarkerNoLines) {
  EXPECT_TRUE(lines_of("Welcome\nmarker", 1).empty());
  EXPECT_TRUE(lines_of("marker \nline\n", 5).empty());
}

}  // namespace
}  // namespace gleaner::launcher
