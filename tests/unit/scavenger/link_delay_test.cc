#include "common/scavenger/link_delay.h"

#include <gtest/gtest.h>

#include <vector>

namespace gleaner::scavenger {
namespace {

using absl::Milliseconds;

// Reports what workers measure whose links have these queueing delays, and the summer's link `summer`.
void report(LinkDelay& delay, const std::vector<absl::Duration>& workers, absl::Duration summer,
            absl::Duration at = {}) {
  absl::Duration all;
  for (const absl::Duration link : workers) all += link;
  for (uint32_t i = 0; i < workers.size(); ++i) {
    const absl::Duration others = (all - workers[i]) / static_cast<int64_t>(workers.size() - 1);
    delay.update(i, {at, workers[i] + summer, workers[i] + others});
  }
}

void expect_near(std::optional<absl::Duration> got, absl::Duration wanted) {
  ASSERT_TRUE(got.has_value());
  EXPECT_NEAR(absl::ToDoubleMicroseconds(*got), absl::ToDoubleMicroseconds(wanted), 0.01);
}

TEST(LinkDelay, IsThatOfTheSummersLinkAlone) {
  for (const absl::Duration summer : {Milliseconds(0), Milliseconds(3), Milliseconds(40)}) {
    for (const auto& workers : std::vector<std::vector<absl::Duration>>{
             {Milliseconds(9), Milliseconds(12)},
             {Milliseconds(1), Milliseconds(12), Milliseconds(30)},
             {Milliseconds(10), Milliseconds(10), Milliseconds(11), Milliseconds(0), Milliseconds(25)}}) {
      LinkDelay delay;
      report(delay, workers, summer);
      expect_near(delay.estimate({}), summer);
    }
  }
}

TEST(LinkDelay, OneWorkersWrongMeasurementsDoNotCount) {
  LinkDelay delay;
  report(delay, {Milliseconds(9), Milliseconds(10), Milliseconds(11), Milliseconds(12), Milliseconds(13)},
         Milliseconds(2));
  delay.update(3, {{}, absl::Hours(5), absl::Hours(-7)});
  const auto got = delay.estimate({});
  ASSERT_TRUE(got.has_value());
  EXPECT_GE(*got, absl::ZeroDuration());
  EXPECT_LE(*got, Milliseconds(11)) << "at most the least delay of a worker's connection";
}

TEST(LinkDelay, OldMeasurementsDoNotCount) {
  LinkDelay delay;
  report(delay, {Milliseconds(9), Milliseconds(12)}, Milliseconds(2));
  EXPECT_TRUE(delay.estimate(kFresh).has_value());
  EXPECT_EQ(delay.estimate(kFresh + absl::Nanoseconds(1)), std::nullopt);
}

TEST(LinkDelay, AWorkerThatHasNotReportedDoesNotCountUnlessItIsTheOnlyOne) {
  LinkDelay delay;
  delay.update(0, {{}, Milliseconds(5), std::nullopt});
  EXPECT_EQ(delay.estimate({}), Milliseconds(5));
  delay.update(1, {{}, Milliseconds(5), std::nullopt});
  EXPECT_EQ(delay.estimate({}), std::nullopt);
  delay.update(1, {{}, Milliseconds(5), Milliseconds(4)});
  expect_near(delay.estimate({}), Milliseconds(3));
}

TEST(LinkDelay, AWorkerThatIsGoneDoesNotCount) {
  LinkDelay delay;
  delay.update(0, {{}, Milliseconds(5), std::nullopt});
  delay.remove(0);
  EXPECT_EQ(delay.estimate({}), std::nullopt);
}

TEST(LinkDelay, ADelayThatDoesNotLastIsNoQueue) {
  LinkDelay delay;
  const std::vector<absl::Duration> workers{Milliseconds(9), Milliseconds(12)};
  for (size_t i = 1; i < LinkDelay::kFilter; ++i) {
    report(delay, workers, Milliseconds(20));
    report(delay, workers, Milliseconds(0));
    expect_near(delay.estimate({}), Milliseconds(0));
    report(delay, workers, Milliseconds(20));
    expect_near(delay.estimate({}), Milliseconds(0));
  }
  for (size_t i = 0; i < LinkDelay::kFilter; ++i) {
    report(delay, workers, Milliseconds(20));
    delay.estimate({});
  }
  expect_near(delay.estimate({}), Milliseconds(20));
}

}  // namespace
}  // namespace gleaner::scavenger
