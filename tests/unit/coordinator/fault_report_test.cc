#include "coordinator/failures/fault_report.h"

#include <gmock/gmock.h>

#include "coordinator/core/step_monitor.h"
#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::HasSubstr;

class FaultReportTest : public testing::Test {
 protected:
  FaultReportTest() {
    seat_all(roster_, options_);
    roster_[2].since = 4;
  }
  // Worker 1 reports this member.
  Finding report(uint32_t member, uint32_t epoch) {
    return judge({1, member, epoch, absl::UnavailableError("refused")}, roster_, steps_.deadlocks());
  }

  const Options options_ = job_of(2, 1);
  Roster roster_{options_};
  Declarations declarations_{&roster_};
  StepMonitor steps_{&options_, &roster_, &declarations_};
};

TEST_F(FaultReportTest, TheAccusedMemberIsLost) {
  EXPECT_EQ(report(0, 4), Finding(Loss{0, "worker 1 reports: refused"}));
  EXPECT_EQ(report(2, 4), Finding(Loss{2, "worker 1 reports: refused"}));
  EXPECT_EQ(report(2, 0), Finding(Loss{2, "worker 1 reports: refused"})) << "the epoch is not known";
}

TEST_F(FaultReportTest, AReportOfAnEarlierSummerIsIgnored) {
  EXPECT_EQ(report(2, 3), Finding());
  roster_[2].since = 0;
  EXPECT_EQ(report(2, 4), Finding()) << "the summer is in no plan yet";
}

TEST_F(FaultReportTest, AnIndexBeyondThePlanAccusesTheSender) {
  const auto failure = std::get<Failure>(report(3, 4));
  EXPECT_EQ(failure.status, absl::UnavailableError("worker 1 at 10.0.0.1:7000 can't go on: refused"));
  EXPECT_EQ(failure.culprit, 1u);
  EXPECT_FALSE(failure.is_loss);
}

TEST_F(FaultReportTest, RanksThatDifferKeepTheCode) {
  const absl::Status why = absl::InvalidArgumentError("tensor 'w': ranks differ");
  const auto failure = std::get<Failure>(judge({1, 3, 4, why}, roster_, steps_.deadlocks()));
  EXPECT_EQ(failure.status,
            absl::InvalidArgumentError("worker 1 at 10.0.0.1:7000 can't go on: tensor 'w': ranks differ"));
  EXPECT_EQ(failure.own, why);
}

TEST_F(FaultReportTest, ARankThatLeftTooEarlyIsTheCause) {
  roster_.vacate(0, Seat::State::kLeft, absl::ZeroDuration());
  const auto failure = std::get<Failure>(report(0, 4));
  EXPECT_THAT(failure.status.message(), HasSubstr("worker 0 finished; worker 1 is at step 1"));
  EXPECT_EQ(failure.culprit, 0u);
  EXPECT_TRUE(failure.is_loss);
}

}  // namespace
}  // namespace gleaner::coordinator
