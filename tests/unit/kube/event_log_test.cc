#include "common/kube/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

const ObjectReference kJob{"gleaner.dev/v1alpha1", "TrainingJob", "team", "digits", "uid-1"};

class EventLogTest : public testing::Test {
 protected:
  void record(absl::string_view message, const ObjectReference& object = kJob) {
    log_.record({now_, absl::UnixEpoch() + now_}, object, "Normal", "Started", message);
  }
  // Returns the Events that are written once all waiting ones are.
  std::vector<Object> flush() {
    std::vector<Object> events;
    while (auto write = log_.next(now_, true)) events.push_back(write->event);
    return events;
  }

  EventLog log_{"gleaner-operator", "operator-0"};
  absl::Duration now_ = absl::Seconds(1000);
};

TEST_F(EventLogTest, WritesTheFieldsThatDescribeShows) {
  record("4 workers");
  const std::vector<Object> events = flush();
  ASSERT_EQ(events.size(), 1U);
  const Object& event = events[0];
  EXPECT_EQ(event["involvedObject"]["kind"], "TrainingJob");
  EXPECT_EQ(event["involvedObject"]["uid"], "uid-1");
  EXPECT_EQ(event["involvedObject"]["namespace"], "team");
  EXPECT_EQ(event["metadata"]["namespace"], "team");
  EXPECT_THAT(name_of(event), testing::StartsWith("digits."));
  EXPECT_EQ(event["reason"], "Started");
  EXPECT_EQ(event["message"], "4 workers");
  EXPECT_EQ(event["count"], 1);
  EXPECT_EQ(event["source"]["component"], "gleaner-operator");
  EXPECT_EQ(event["firstTimestamp"], "1970-01-01T00:16:40Z");
}

TEST_F(EventLogTest, ARepeatedEventIsCountedUnderTheSameName) {
  record("x");
  const Object first = flush().at(0);
  now_ += absl::Minutes(9);
  record("x");
  record("x");
  const std::vector<Object> later = flush();
  ASSERT_EQ(later.size(), 1U);
  EXPECT_EQ(later[0]["count"], 3);
  EXPECT_EQ(name_of(later[0]), name_of(first));
  EXPECT_EQ(later[0]["firstTimestamp"], first["firstTimestamp"]);
  EXPECT_EQ(later[0]["lastTimestamp"], "1970-01-01T00:25:40Z");
}

TEST_F(EventLogTest, ARepetitionAfterTheWindowIsANewEvent) {
  record("x");
  const Object first = flush().at(0);
  now_ += absl::Minutes(11);
  record("x");
  const Object second = flush().at(0);
  EXPECT_EQ(second["count"], 1);
  EXPECT_NE(name_of(second), name_of(first));
}

TEST_F(EventLogTest, ADifferentTextIsANewEvent) {
  record("x");
  record("y");
  ObjectReference other = kJob;
  other.uid = "uid-2";
  record("x", other);
  const std::vector<Object> events = flush();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_NE(name_of(events[0]), name_of(events[1]));
  EXPECT_NE(name_of(events[0]), name_of(events[2]));
}

TEST_F(EventLogTest, ManyRepetitionsAreWrittenOnceASecond) {
  record("x");
  ASSERT_TRUE(log_.next(now_, false).has_value());
  for (int i = 0; i < 1000; ++i) record("x");
  EXPECT_FALSE(log_.next(now_, false).has_value());
  now_ += absl::Seconds(1);
  const auto write = log_.next(now_, false);
  ASSERT_TRUE(write.has_value());
  EXPECT_EQ(write->event["count"], 1001);
  EXPECT_EQ(log_.waiting(), 0U);
}

TEST_F(EventLogTest, AFailedWriteIsRetriedWithTheLatestCount) {
  record("x");
  auto write = log_.next(now_, true);
  log_.failed(*write);
  EXPECT_EQ(flush().at(0)["count"], 1);
  record("x");
  write = log_.next(now_, true);
  record("x");
  log_.failed(*write);
  const std::vector<Object> events = flush();
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0]["count"], 3);
}

TEST_F(EventLogTest, KeepsTheNewestWhenNothingCanBeWritten) {
  for (size_t i = 0; i < EventLog::kMaxWaiting + 5; ++i) record(absl::StrCat("message ", i));
  EXPECT_EQ(log_.waiting(), EventLog::kMaxWaiting);
  EXPECT_EQ(flush().at(0)["message"], "message 5");
}

TEST_F(EventLogTest, WritesEventsOfClusterObjectsToDefault) {
  record("x", {"v1", "Node", "", "n1", "uid"});
  const Object event = flush().at(0);
  EXPECT_EQ(namespace_of(event), "default");
  EXPECT_FALSE(event["involvedObject"].contains("namespace"));
}

TEST_F(EventLogTest, TruncatesTextsThatTheServerWouldRefuse) {
  ObjectReference job = kJob;
  job.name = std::string(253, 'n');
  log_.record({now_, absl::UnixEpoch()}, job, "Warning", std::string(1000, 'r'), std::string(100000, '\xff'));
  const Object event = flush().at(0);
  EXPECT_LE(event["reason"].get<std::string>().size(), 128U);
  EXPECT_LE(event["message"].get<std::string>().size(), 1024U);
  EXPECT_THAT(event["message"].get<std::string>(), testing::EndsWith(" more characters)"));
  EXPECT_LE(name_of(event).size(), 253U);
}

}  // namespace
}  // namespace gleaner::kube
