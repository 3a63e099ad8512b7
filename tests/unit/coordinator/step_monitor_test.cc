#include "coordinator/core/step_monitor.h"

#include <gmock/gmock.h>

#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::IsEmpty;
using testing::Not;

// Two workers of two local ranks, and one summer.
class StepMonitorTest : public testing::Test {
 protected:
  StepMonitorTest() {
    seat_all(roster_, options_);
    plan_.epoch = 1;
    plan_.workers = options_.workers;
    plan_.local_ranks = options_.local_ranks;
    for (uint32_t seat : {0, 2, 4}) plan_.members.push_back({1e9, identity_of(options_, seat).address, 1});
    for (uint32_t owner = 0; owner < 3; ++owner) plan_.partitions.push_back({0, owner, 0, 100});
    roster_[4].since = 1;
    steps_.on_plan(plan_, {}, {});
  }
  // Every rank reports once a second that the summer was late for 0.8 s of each step. Returns the lines for the log.
  std::vector<std::string> report(bool judges_summers, const std::vector<uint32_t>& ranks) {
    Report report;
    report.epoch = 1;
    report.late = {{2, 0}};
    Actions actions;
    for (int second = 1; second <= 60; ++second) {
      report.steps = static_cast<uint64_t>(second);
      report.bytes += 1000;
      report.communication_seconds += 0.9;
      report.late[0].seconds += 0.8;
      for (const uint32_t rank : ranks) {
        steps_.on_report(rank, report, judges_summers, absl::Seconds(second), actions);
      }
    }
    return actions.notes;
  }

  const Options options_ = job_of(2, 1, 2);
  Roster roster_{options_};
  Declarations declarations_{&roster_};
  StepMonitor steps_{&options_, &roster_, &declarations_};
  plan::Plan plan_;
};

TEST_F(StepMonitorTest, OneRankOfEachWorkerJudgesSummers) {
  EXPECT_THAT(report(true, {1, 3}), IsEmpty());
  EXPECT_EQ(steps_.efficiency().latest(1).steps, 60u) << "the steps of all ranks count";
  EXPECT_THAT(report(true, {0, 2}), Not(IsEmpty()));
  EXPECT_TRUE(roster_[4].on_standby);
}

TEST_F(StepMonitorTest, SummersAreNotJudgedWhileARankIsMissing) {
  EXPECT_THAT(report(false, {0, 1, 2, 3}), IsEmpty());
  EXPECT_FALSE(roster_[4].on_standby);
}

TEST_F(StepMonitorTest, OnceARankHasLeftOthersMustNotWaitForIt) {
  Actions actions;
  const absl::Duration now = absl::Seconds(20);
  roster_.vacate(0, Seat::State::kLeft, {});
  roster_[1].last_heard = now;
  steps_.deadlocks().on_waiting(1, {{"w", 3, absl::Seconds(1)}});
  EXPECT_EQ(steps_.check_waiting_ranks(std::nullopt, now, actions), std::nullopt);
  EXPECT_EQ(steps_.check_waiting_ranks(absl::Seconds(15), now, actions)->culprit, 0u);
}

}  // namespace
}  // namespace gleaner::coordinator
