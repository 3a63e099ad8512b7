#include "common/transport/stream/answer_times.h"

#include <gtest/gtest.h>

namespace gleaner::transport::stream {
namespace {

constexpr absl::Duration kNow = absl::Seconds(100);

// Has the next PING answered after `time`.
bool answer(AnswerTimes& times, absl::Duration time) { return times.on_pong(times.on_ping(kNow), kNow + time); }

TEST(AnswerTimes, TheLowerQuartileCounts) {
  AnswerTimes times;
  EXPECT_EQ(times.usual(), absl::ZeroDuration());
  times.begin(4);
  for (const int microseconds : {80, 40, 900}) EXPECT_TRUE(answer(times, absl::Microseconds(microseconds)));
  EXPECT_TRUE(times.is_under_way());
  EXPECT_FALSE(answer(times, absl::Microseconds(50)));
  EXPECT_FALSE(times.is_under_way());
  EXPECT_EQ(times.usual(), absl::Microseconds(50));
}

TEST(AnswerTimes, OtherPongsDoNotCount) {
  AnswerTimes times;
  EXPECT_FALSE(times.on_pong(0, kNow)) << "the answer to a PING for keep-alive";
  times.begin(2);
  const uint32_t given_up = times.on_ping(kNow);
  times.begin(2);
  const uint32_t number = times.on_ping(kNow);
  EXPECT_FALSE(times.on_pong(given_up, kNow));
  EXPECT_FALSE(times.on_pong(0, kNow));
  EXPECT_EQ(times.usual(), absl::ZeroDuration());
  EXPECT_TRUE(times.on_pong(number, kNow + absl::Microseconds(7)));
  EXPECT_FALSE(times.on_pong(number, kNow)) << "it came already";
  EXPECT_EQ(times.usual(), absl::Microseconds(7));
}

TEST(AnswerTimes, OldAnswersAreForgotten) {
  AnswerTimes times;
  times.begin(2 * AnswerTimes::kRemembered);
  for (size_t i = 0; i < AnswerTimes::kRemembered; ++i) answer(times, absl::Microseconds(5));
  for (size_t i = 0; i < AnswerTimes::kRemembered; ++i) answer(times, absl::Microseconds(9));
  EXPECT_EQ(times.usual(), absl::Microseconds(9));
}

}  // namespace
}  // namespace gleaner::transport::stream
