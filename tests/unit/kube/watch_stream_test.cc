#include "common/kube/watch_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

TEST(LineReader, ReturnsTheSameLinesForAllChunkSizes) {
  const std::string text = "one\ntwo\n\nthree\nrest";
  for (size_t size = 1; size <= text.size(); ++size) {
    LineReader reader;
    std::vector<std::string> lines;
    for (size_t start = 0; start < text.size(); start += size) {
      EXPECT_TRUE(reader.feed(text.substr(start, size), [&](absl::string_view line) {
        lines.emplace_back(line);
        return true;
      }));
    }
    EXPECT_THAT(lines, testing::ElementsAre("one", "two", "three")) << "chunks of " << size;
  }
}

TEST(LineReader, StopsWhenTheCallbackReturnsFalse) {
  LineReader reader;
  int lines = 0;
  EXPECT_FALSE(reader.feed("a\nb\n", [&](absl::string_view) { return ++lines < 1; }));
  EXPECT_EQ(lines, 1);
}

TEST(WatchEvent, IsReadByItsType) {
  const auto event = parse_watch_event(R"({"type":"DELETED","object":{"metadata":{"name":"a","managedFields":[]}}})");
  ASSERT_TRUE(event.ok()) << event.status();
  EXPECT_EQ(event->type, EventType::kDeleted);
  EXPECT_EQ(name_of(event->object), "a");
  EXPECT_FALSE(event->object["metadata"].contains("managedFields"));
  EXPECT_EQ(parse_watch_event(R"({"type":"BOOKMARK","object":{}})")->type, EventType::kBookmark);
}

TEST(WatchEvent, AnErrorIsItsStatus) {
  const absl::Status expired =
      parse_watch_event(R"({"type":"ERROR","object":{"code":410,"reason":"Expired","message":"too old"}})").status();
  EXPECT_TRUE(absl::IsOutOfRange(expired)) << expired;
  EXPECT_EQ(expired.message(), "too old");
  EXPECT_TRUE(absl::IsUnavailable(parse_watch_event(R"({"type":"ERROR","object":{"code":500}})").status()));
  EXPECT_TRUE(absl::IsUnavailable(parse_watch_event(R"({"type":"ERROR","object":{}})").status()));
}

TEST(WatchEvent, GarbageIsABrokenWatch) {
  for (const char* line : {"{", "3", "{\"type\":\"ADDED\"}", "{\"type\":\"NEW\",\"object\":{}}", "{\"object\":{}}"}) {
    EXPECT_TRUE(absl::IsUnavailable(parse_watch_event(line).status())) << line;
  }
}

}  // namespace
}  // namespace gleaner::kube
