#include "comm-lib/supervision/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::supervision {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr uint32_t kSelf = 0;
constexpr uint32_t kOnlySummer = 1;

plan::Plan one_worker_and_a_summer() {
  plan::Plan plan;
  plan.epoch = 1;
  plan.workers = 1;
  plan.members = {{1e9, "10.0.0.1:1", 1, {}}, {1e9, "10.0.0.2:1", 1, {}}};
  return plan;
}

class ReportsTest : public testing::Test {
 protected:
  ReportsTest()
      : reports_({.deadline = absl::Seconds(3),
                  .plan_timeout = absl::Minutes(1),
                  .verdict_timeout = absl::Seconds(8),
                  .repeat_every = absl::Seconds(1)}) {
    reports_.on_plan(one_worker_and_a_summer());
  }
  void lose_the_summer() { reports_.add(kOnlySummer, now_, absl::UnavailableError("connection reset"), now_); }
  // Returns the reports that are to be sent within this time.
  std::vector<Report> pass(absl::Duration time) {
    actions_ = {};
    for (const absl::Duration end = now_ + time; now_ < end; now_ += absl::Milliseconds(5)) {
      reports_.tick(now_, due_, actions_);
    }
    return actions_.reports;
  }

  absl::Duration now_ = absl::Seconds(100);
  Reports reports_;
  ReportActions actions_;
  std::vector<uint32_t> due_ = {kOnlySummer};
};

TEST_F(ReportsTest, ReportsALossAtOnceAndEverySecond) {
  EXPECT_THAT(pass(absl::Seconds(1)), SizeIs(0));
  lose_the_summer();
  const std::vector<Report> said = pass(absl::Milliseconds(5));
  ASSERT_THAT(said, SizeIs(1));
  EXPECT_EQ(said[0].member, kOnlySummer);
  EXPECT_EQ(said[0].why, absl::UnavailableError("connection reset"));
  EXPECT_THAT(actions_.warnings, SizeIs(1));
  EXPECT_THAT(pass(absl::Milliseconds(900)), SizeIs(0));
  EXPECT_THAT(pass(absl::Seconds(10)), SizeIs(10));
  EXPECT_THAT(actions_.warnings, SizeIs(2)) << "warnings are less frequent than reports";
}

TEST_F(ReportsTest, ReportsUntilThePathHeals) {
  lose_the_summer();
  reports_.withdraw(kOnlySummer);
  EXPECT_THAT(pass(absl::Seconds(10)), SizeIs(0));
}

TEST_F(ReportsTest, ReportsUntilAPlanOmitsTheSummer) {
  lose_the_summer();
  plan::Plan plan = one_worker_and_a_summer();
  plan.epoch = 2;
  reports_.on_plan(plan);
  EXPECT_THAT(pass(absl::Milliseconds(5)), SizeIs(1)) << "a plan that still includes the summer changes nothing";
  plan.epoch = 3;
  plan.members[kOnlySummer] = {};
  reports_.on_plan(plan);
  EXPECT_THAT(pass(absl::Seconds(10)), SizeIs(0));
}

TEST_F(ReportsTest, ASummerInAReusedPlaceIsNotReported) {
  lose_the_summer();
  plan::Plan plan = one_worker_and_a_summer();
  plan.epoch = plan.members[kOnlySummer].since = 2;
  reports_.on_plan(plan);
  EXPECT_THAT(pass(absl::Seconds(10)), SizeIs(0));
}

TEST_F(ReportsTest, AReturningCoordinatorGetsTheReportAtOnce) {
  lose_the_summer();
  pass(absl::Milliseconds(100));
  reports_.on_coordinator_lost(now_);
  EXPECT_THAT(pass(absl::Seconds(10)), SizeIs(0));
  EXPECT_TRUE(actions_.failure.ok());
  EXPECT_THAT(actions_.warnings, testing::Each(HasSubstr("waiting for the coordinator")));
  reports_.on_coordinator_found();
  EXPECT_THAT(pass(absl::Milliseconds(5)), SizeIs(1));
}

TEST_F(ReportsTest, WaitsForALostCoordinatorForThePlanTimeout) {
  reports_.on_coordinator_lost(now_);
  pass(absl::Minutes(5));
  EXPECT_TRUE(actions_.failure.ok()) << "no sum waits for the summer";
  lose_the_summer();
  pass(absl::Seconds(59));
  EXPECT_TRUE(actions_.failure.ok());
  pass(absl::Seconds(2));
  EXPECT_THAT(actions_.failure.message(), HasSubstr("summer/0 at 10.0.0.2:1 is lost"));
}

TEST_F(ReportsTest, WithoutACoordinatorTheDeadlineEndsTheSession) {
  reports_.on_coordinator_lost(now_);
  reports_.on_coordinator_gone(absl::UnavailableError("it ended the stream"));
  lose_the_summer();
  pass(absl::Milliseconds(2900));
  EXPECT_TRUE(actions_.failure.ok());
  pass(absl::Milliseconds(200));
  EXPECT_THAT(actions_.failure.message(), HasSubstr("summer/0 at 10.0.0.2:1 is lost: out of reach for 3s"));
  EXPECT_THAT(actions_.failure.message(), HasSubstr("no coordinator is left"));
  EXPECT_THAT(actions_.failure.message(), HasSubstr("connection reset"));
}

TEST_F(ReportsTest, TheDeadlineDoesNotApplyWithoutOutstandingSums) {
  reports_.on_coordinator_gone(absl::UnavailableError("it ended the stream"));
  lose_the_summer();
  due_ = {};
  pass(absl::Minutes(1));
  EXPECT_TRUE(actions_.failure.ok());
}

class ReportsOfWorkersTest : public ReportsTest {
 protected:
  void lose_the_worker() { reports_.add_worker(kSelf, absl::UnavailableError("worker/0 at 10.0.0.1:1 is lost"), now_); }
};

TEST_F(ReportsOfWorkersTest, AskTheCoordinatorForAVerdict) {
  due_ = {};  // sums of other members may wait for the worker
  lose_the_worker();
  EXPECT_THAT(pass(absl::Milliseconds(7900)), SizeIs(8)) << "a report may be lost";
  EXPECT_THAT(actions_.warnings, SizeIs(0)) << "the supervisor warns";
  EXPECT_TRUE(actions_.failure.ok());
  pass(absl::Milliseconds(200));
  EXPECT_EQ(actions_.lost_worker, kSelf);
  EXPECT_THAT(actions_.failure.message(), HasSubstr("10.0.0.1:1 is lost; the coordinator has not answered within 8s"));
}

TEST_F(ReportsOfWorkersTest, FailWithoutACoordinator) {
  for (const bool may_return : {false, true}) {
    Reports reports({.verdict_timeout = absl::Seconds(8)});
    reports.on_plan(one_worker_and_a_summer());
    if (may_return) reports.on_coordinator_lost(now_);
    if (!may_return) reports.on_coordinator_gone(absl::UnavailableError("it ended the stream"));
    reports.add_worker(kSelf, absl::UnavailableError("worker/0 is lost"), now_);
    ReportActions actions;
    reports.tick(now_, {}, actions);
    EXPECT_EQ(actions.lost_worker, kSelf);
    EXPECT_EQ(actions.failure, absl::UnavailableError("worker/0 is lost"));
  }
}

TEST_F(ReportsOfWorkersTest, FailOnceTheCoordinatorIsGone) {
  lose_the_worker();
  pass(absl::Seconds(1));
  EXPECT_TRUE(actions_.failure.ok());
  reports_.on_coordinator_gone(absl::UnavailableError("it ended the stream"));
  pass(absl::Milliseconds(5));
  EXPECT_EQ(actions_.failure, absl::UnavailableError("worker/0 at 10.0.0.1:1 is lost"));
}

TEST_F(ReportsOfWorkersTest, AreWithdrawnWhenThePathHeals) {
  lose_the_worker();
  pass(absl::Seconds(1));
  reports_.withdraw(kSelf);
  EXPECT_THAT(pass(absl::Seconds(20)), SizeIs(0));
  EXPECT_TRUE(actions_.failure.ok());
}

}  // namespace
}  // namespace gleaner::supervision
