#include "coordinator/core/lifecycle.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two workers and two summers, which have joined.
class LifecycleTest : public testing::Test {
 protected:
  LifecycleTest() { seat_all(parts_.roster, options_); }
  // Every member acknowledges the proposed plan, which is then committed.
  void commit() {
    for (uint32_t seat = 0; seat < parts_.roster.size(); ++seat) {
      if (parts_.roster[seat].takes_part()) parts_.roster[seat].acknowledged = agreement().highest_epoch();
    }
    lifecycle_.commit_if_acknowledged(now_, actions_);
  }
  // Begins the job.
  void begin() {
    lifecycle_.begin_if_all_joined(now_, actions_);
    commit();
    ASSERT_EQ(parts_.phase(), Phase::kRunning);
    actions_ = {};
  }
  const PlanAgreement& agreement() const { return parts_.planning.agreement(); }
  // Returns the number of messages of this type.
  template <typename Type>
  size_t count() const {
    return std::count_if(actions_.sends.begin(), actions_.sends.end(),
                         [](const Send& send) { return std::holds_alternative<Type>(send.message); });
  }

  const absl::Duration now_ = absl::Seconds(100);
  const Options options_ = job_of(2, 2);
  Parts parts_{options_, now_, Origin{"session 1"}};
  Lifecycle lifecycle_{&parts_};
  Actions actions_;
};

TEST_F(LifecycleTest, TheJobBeginsOnceAllMembersHaveJoined) {
  parts_.roster.vacate(3, Seat::State::kEmpty, now_);
  lifecycle_.begin_if_all_joined(now_, actions_);
  EXPECT_FALSE(parts_.planning.is_proposed());
  seat_member(parts_.roster, options_, 3);
  lifecycle_.begin_if_all_joined(now_, actions_);
  EXPECT_EQ(agreement().proposed_epoch(), 1u);
  EXPECT_EQ(count<Prepare>(), 4u);
  EXPECT_EQ(parts_.phase(), Phase::kGathering);
  commit();
  EXPECT_EQ(parts_.phase(), Phase::kRunning);
}

TEST_F(LifecycleTest, ALostSummerCausesTheNextPlan) {
  begin();
  lifecycle_.lose({3, "silent"}, now_, actions_);
  EXPECT_FALSE(parts_.outcome.has_ended());
  EXPECT_EQ(agreement().proposed_epoch(), 2u);
  EXPECT_EQ(agreement().reason(), PlanReason::kRecovery);
  EXPECT_EQ(parts_.planning.changes().lost, 1u);
  lifecycle_.lose({3, "silent"}, now_, actions_);
  EXPECT_EQ(parts_.planning.changes().lost, 1u) << "it takes no part any more";
}

TEST_F(LifecycleTest, TheJobBeginsWithoutASummerThatIsLostBefore) {
  lifecycle_.lose({2, "silent"}, now_, actions_);
  EXPECT_EQ(agreement().proposed_epoch(), 1u);
  EXPECT_THAT(actions_.warnings, ElementsAre(HasSubstr("silent; the job begins without it")));
}

TEST_F(LifecycleTest, ALostRankFailsTheJob) {
  begin();
  lifecycle_.lose({1, "silent"}, now_, actions_);
  EXPECT_EQ(parts_.phase(), Phase::kEnded);
  EXPECT_EQ(*parts_.outcome.status(), absl::UnavailableError("worker 1 at 10.0.0.1:7000 is lost: silent"));
  EXPECT_EQ(parts_.outcome.culprit(), 1u);
  EXPECT_EQ(count<Failed>(), 4u);
  lifecycle_.fail({absl::InternalError("later"), 0}, actions_);
  EXPECT_EQ(count<Failed>(), 4u) << "the first outcome stays";
}

TEST_F(LifecycleTest, DeclaredTensorsCauseTheNextPlan) {
  begin();
  for (const uint32_t rank : {0, 1}) {
    lifecycle_.declare(rank, {{"w", 100, DataType::kFloat32, 0}}, {}, now_, actions_);
    lifecycle_.propose_next(now_, actions_);
    EXPECT_EQ(agreement().proposed_epoch(), rank == 0 ? 0u : 2u);
  }
  lifecycle_.declare(1, {{"w", 7, DataType::kFloat32, 0}}, {}, now_, actions_);
  EXPECT_EQ(parts_.phase(), Phase::kEnded) << "the declarations differ";
}

TEST_F(LifecycleTest, TheJobEndsWithTheLastRankThatLeaves) {
  begin();
  lifecycle_.leave(0, now_, actions_);
  EXPECT_EQ(parts_.phase(), Phase::kRunning);
  lifecycle_.leave(1, now_, actions_);
  EXPECT_EQ(*parts_.outcome.status(), absl::OkStatus());
  EXPECT_EQ(count<Finished>(), 2u) << "both summers";
}

TEST_F(LifecycleTest, AMemberIsAwaitedOnlyIfItCanReturn) {
  begin();
  EXPECT_FALSE(lifecycle_.wait_for_return(1, "broken", now_, actions_)) << "return_timeout is 0";
  EXPECT_EQ(parts_.roster[1].state, Seat::State::kPresent);
  parts_.reattachment.begin(actions_);
  EXPECT_TRUE(lifecycle_.wait_for_return(1, "broken", now_, actions_));
  EXPECT_EQ(parts_.roster[1].state, Seat::State::kAway);
  EXPECT_THAT(actions_.warnings.back(), HasSubstr("broken; waiting for it to come back"));
}

}  // namespace
}  // namespace gleaner::coordinator
