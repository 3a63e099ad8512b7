#include "coordinator/measure/lateness_windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::coordinator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Two workers and two summers, members 2 and 3, under a plan of epoch 5. Each worker reports once a second.
class LatenessWindowsTest : public testing::Test {
 protected:
  struct Second {
    uint64_t steps = 10;
    double communication = 0.8;
    std::vector<double> late = {0, 0};  // by summer
    double round_trip = 0;
    double workers_late = 0;
    uint64_t bytes = 0;
  };

  LatenessWindowsTest() {
    // Each worker owns 100 bytes, each summer 200.
    plan_ = plan::make_plan({{1e9, 1e9}, {1e9, 1e9}}, {}, {}).value();
    plan_.epoch = 5;
    for (uint32_t owner = 0; owner < 4; ++owner) plan_.partitions.push_back({0, owner, 0, owner < 2 ? 100u : 200u});
    windows_.on_plan(plan_);
    pass({}, {});
  }
  // Reports of a second in which the workers measured this. Returns the window that ended.
  std::optional<LatenessWindows::Window> pass(const Second& zero, const Second& one) {
    now_ += absl::Seconds(1);
    const auto first = report(0, zero);
    const auto second = report(1, one);
    return second.has_value() ? second : first;
  }
  std::optional<LatenessWindows::Window> report(uint32_t worker, const Second& second) {
    Report& total = totals_[worker];
    total.epoch = epoch_;
    total.steps += second.steps;
    total.communication_seconds += second.communication;
    total.round_trip_seconds = second.round_trip;
    total.bytes += second.bytes;
    total.workers_late_seconds += second.workers_late;
    total.late.resize(2);
    for (uint32_t i = 0; i < 2; ++i) {
      total.late[i].member = 2 + i;
      total.late[i].seconds += second.late[i];
    }
    return windows_.on_report(worker, total, now_);
  }
  static std::vector<uint32_t> late(const std::optional<LatenessWindows::Window>& window) {
    std::vector<uint32_t> members;
    if (!window.has_value()) ADD_FAILURE() << "no window has ended";
    for (const auto& late : window.value_or(LatenessWindows::Window()).late) members.push_back(late.member);
    return members;
  }

  plan::Plan plan_;
  LatenessWindows windows_;
  Report totals_[2];
  uint32_t epoch_ = 5;
  absl::Duration now_ = absl::Seconds(1000);
};

TEST_F(LatenessWindowsTest, LateForEveryWorker) {
  const auto window = pass({.late = {0.6, 0.01}}, {.late = {0.5, 0.01}});
  ASSERT_THAT(late(window), ElementsAre(2));
  EXPECT_DOUBLE_EQ(window->late[0].seconds, 0.05) << "the least of both workers, per step";
  EXPECT_DOUBLE_EQ(window->step_seconds, 0.1);
}

TEST_F(LatenessWindowsTest, ASlowWorkerDoesNotWait) {
  EXPECT_THAT(late(pass({.late = {0.7, 0.7}}, {.late = {0, 0}})), IsEmpty());
}

TEST_F(LatenessWindowsTest, AllSummersMayBeLate) {
  EXPECT_THAT(late(pass({.late = {0.7, 0.7}}, {.late = {0.7, 0.7}})), ElementsAre(2, 3));
}

TEST_F(LatenessWindowsTest, LittleLatenessDoesNotCount) {
  EXPECT_THAT(late(pass({.late = {0.2, 0}}, {.late = {0.2, 0}})), IsEmpty()) << "a fourth of the communication";
  EXPECT_THAT(late(pass({.communication = 0.08, .late = {0.08, 0}}, {.communication = 0.08, .late = {0.08, 0}})),
              IsEmpty())
      << "less than a tenth of the time";
}

TEST_F(LatenessWindowsTest, RoundTripsAreNoLateness) {
  const Second fast{.steps = 5000, .late = {0.6, 0}}, far{.late = {0.6, 0}, .round_trip = 0.01};
  EXPECT_THAT(late(pass(fast, fast)), IsEmpty()) << "0.12 ms in each step";
  EXPECT_THAT(late(pass(far, far)), IsEmpty()) << "60 ms in each step, six round trips";
}

TEST_F(LatenessWindowsTest, OwnersThatAreLateInTurnAreEquallySlow) {
  // The workers own as much as the summer, which is as late as their summers, and then more than twice as late.
  EXPECT_THAT(late(pass({.late = {0.4, 0}, .workers_late = 0.4}, {.late = {0.4, 0}, .workers_late = 0.4})), IsEmpty());
  EXPECT_THAT(late(pass({.late = {0.4, 0}, .workers_late = 0.19}, {.late = {0.4, 0}, .workers_late = 0.19})),
              ElementsAre(2));
  EXPECT_THAT(late(pass({.late = {0.4, 0}, .workers_late = 0.4}, {.late = {0.4, 0}})), ElementsAre(2))
      << "the workers' summers wait for worker 1";
}

TEST_F(LatenessWindowsTest, StepsNearTheBoundHaveNoLateSummer) {
  const double bound = plan::bound_seconds(plan::fleet_of(plan_), 1);
  for (const auto& [factor, expected] : std::vector<std::pair<double, size_t>>{{1.2, 0}, {2, 1}}) {
    const Second second{.late = {0.6, 0}, .bytes = static_cast<uint64_t>(0.8 / factor / bound)};
    EXPECT_EQ(late(pass(second, second)).size(), expected) << factor << " times the bound";
  }
}

TEST_F(LatenessWindowsTest, SummersThatOwnEverythingAreLateTogether) {
  for (auto& partition : plan_.partitions) partition.owner = 2 + partition.owner % 2;
  windows_.on_plan(plan_);
  pass({}, {});
  EXPECT_THAT(late(pass({.late = {0.5, 0.1}}, {.late = {0.5, 0.1}})), ElementsAre(2)) << "one of them is later";
  EXPECT_THAT(late(pass({}, {})), ElementsAre(2, 3));
  EXPECT_THAT(late(pass({}, {.communication = 0.01})), IsEmpty()) << "worker 1 does not wait";
}

TEST_F(LatenessWindowsTest, AWindowHasThreeStepsOfEachWorker) {
  const Second one{.steps = 1, .late = {0.9, 0}}, two{.steps = 2, .late = {0.9, 0}};
  EXPECT_FALSE(pass(one, two).has_value());
  EXPECT_FALSE(pass(one, two).has_value());
  const auto window = pass(one, two);
  ASSERT_THAT(late(window), ElementsAre(2));
  EXPECT_DOUBLE_EQ(window->step_seconds, 1) << "of the slower worker";
  EXPECT_FALSE(pass(one, two).has_value()) << "the next window begins at the end of the last one";
}

TEST_F(LatenessWindowsTest, APlanBeginsAnew) {
  plan_.epoch = 6;
  windows_.on_plan(plan_);
  EXPECT_FALSE(pass({}, {}).has_value()) << "a report of the earlier plan";
  epoch_ = 6;
  EXPECT_FALSE(pass({}, {}).has_value()) << "the first report";
  EXPECT_TRUE(pass({}, {}).has_value());
}

TEST_F(LatenessWindowsTest, ARestartedRankCountsFromZero) {
  const Second slow{.late = {0.6, 0}};
  totals_[0] = {};
  EXPECT_FALSE(pass(slow, slow).has_value());
  EXPECT_THAT(late(pass({.late = {0.6, 0}}, {.late = {0.6, 0}})), ElementsAre(2));
}

TEST_F(LatenessWindowsTest, IgnoresUnknownMembers) {
  totals_[0].late = {{2, 0}, {3, 0}, {0, 1e9}, {77, 1e9}};
  windows_.on_report(9, totals_[0], now_);
  Report strange = totals_[0];
  strange.epoch = 5;
  EXPECT_FALSE(windows_.on_report(0, strange, now_).has_value());
}

}  // namespace
}  // namespace gleaner::coordinator
