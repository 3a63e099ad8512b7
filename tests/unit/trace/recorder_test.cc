// Tests that a recorder keeps the events that come while it is on, in bounded memory that is allocated at the start.
#include "common/trace/recorder.h"

#include <gtest/gtest.h>

#include "tests/unit/engine/allocation_counter.h"

namespace gleaner::trace {
namespace {

class CountingClock final : public Clock {
 public:
  absl::Duration since_start() const override { return absl::Nanoseconds(++reads_); }
  absl::Time now() const override { return absl::UnixEpoch(); }
  int reads() const { return reads_; }

 private:
  mutable int reads_ = 0;
};

TEST(Recorder, KeepsEventsWhileItIsOn) {
  const CountingClock clock;
  Recorder recorder(&clock);
  recorder.record(Kind::kPushed, 7, 1, 2, 3, 4);
  EXPECT_EQ(clock.reads(), 0) << "a recorder that is off does not read the clock";
  recorder.start();
  recorder.record(Kind::kPushed, 7, 1, 2, 3, 4);
  recorder.record({1000, 8, 5, 0, 0, 0, Kind::kRequested});
  recorder.stop();
  recorder.record(Kind::kDone, 8, 5);
  const Recording recording = recorder.take();
  const std::vector<Event> expected = {{1, 7, 1, 2, 4, 3, Kind::kPushed}, {1000, 8, 5, 0, 0, 0, Kind::kRequested}};
  EXPECT_EQ(recording.events, expected);
  EXPECT_EQ(recording.dropped, 0u);
  EXPECT_TRUE(recorder.take().events.empty());
}

TEST(Recorder, DropsTheNewestWhenFullAndCountsThem) {
  const CountingClock clock;
  Recorder recorder(&clock);
  recorder.start();
  for (size_t i = 0; i < Recorder::kMostEvents + 3; ++i) recorder.record(Kind::kResult, i, 0);
  const Recording recording = recorder.take();
  ASSERT_EQ(recording.events.size(), Recorder::kMostEvents);
  EXPECT_EQ(recording.dropped, 3u);
  EXPECT_EQ(recording.events.back().step, Recorder::kMostEvents - 1);

  recorder.start();
  recorder.record(Kind::kResult, 0, 0);
  EXPECT_EQ(recorder.take().dropped, 0u) << "a new recording starts empty";
}

TEST(Recorder, StartAgainClearsEarlierEvents) {
  const CountingClock clock;
  Recorder recorder(&clock);
  recorder.start();
  recorder.record(Kind::kResult, 1, 0);
  recorder.start();
  recorder.record(Kind::kResult, 2, 0);
  const Recording recording = recorder.take();
  ASSERT_EQ(recording.events.size(), 1u);
  EXPECT_EQ(recording.events[0].step, 2u);
}

TEST(Recorder, AllocatesOnlyWhenItIsSwitched) {
  const CountingClock clock;
  Recorder recorder(&clock);
  recorder.start();
  const testing::Allocations before = testing::allocations_so_far();
  for (size_t i = 0; i < Recorder::kMostEvents + 3; ++i) recorder.record(Kind::kResult, i, 0);
  recorder.stop();
  EXPECT_EQ(testing::allocations_so_far().count, before.count);
}

}  // namespace
}  // namespace gleaner::trace
