#include "coordinator/core/joining.h"

#include <gmock/gmock.h>

#include "common/proto/plan_codec.h"
#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two workers and one summer.
class JoiningTest : public testing::Test {
 protected:
  // The member of this seat joins, or returns with `resume`.
  void join(uint32_t seat, const std::optional<Resume>& resume = std::nullopt) {
    actions_ = {};
    joining_.on_joined(stream_++, identity_of(options_, seat), resume, now_, actions_);
  }
  // Begins the job. Every member acknowledges the plan of epoch 1.
  void begin() {
    for (const uint32_t seat : {0, 1, 2}) join(seat);
    for (const uint32_t seat : {0, 1, 2}) parts_.roster[seat].acknowledged = 1;
    lifecycle_.commit_if_acknowledged(now_, actions_);
    ASSERT_EQ(parts_.phase(), Phase::kRunning);
  }
  Resume resume_of(uint32_t seat, const std::string& digest) const { return {"session 1", 1, 0, digest, seat, 1}; }

  const absl::Duration now_ = absl::Seconds(100);
  const Options options_ = job_of(2, 1);
  Parts parts_{options_, now_, Origin{"session 1", true, 0, 1}};
  Lifecycle lifecycle_{&parts_};
  Joining joining_{&parts_, &lifecycle_};
  Actions actions_;
  StreamId stream_ = 200;
};

TEST_F(JoiningTest, TheJobBeginsWithTheLastMember) {
  join(0);
  EXPECT_TRUE(parts_.outcome.any_rank_joined());
  join(2);
  EXPECT_FALSE(parts_.planning.is_proposed());
  join(1);
  EXPECT_TRUE(parts_.planning.is_proposed());
  EXPECT_THAT(actions_.notes, ElementsAre(HasSubstr("joined: 2 of 2 workers, 1 of 1 summer")));
}

TEST_F(JoiningTest, AMemberThatIsNotAdmittedIsRejected) {
  join(0);
  join(0);
  ASSERT_EQ(actions_.sends.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<Rejected>(actions_.sends[0].message));
  EXPECT_EQ(parts_.admission.rejected(), 1u);
}

TEST_F(JoiningTest, ASummerThatTakesThePlaceOfOneThatIsAwayCausesARecovery) {
  begin();
  parts_.roster.vacate(2, Seat::State::kAway, now_);
  join(2);
  EXPECT_THAT(actions_.warnings, ElementsAre(HasSubstr("is lost: its process was started again")));
  EXPECT_EQ(parts_.planning.agreement().reason(), PlanReason::kRecovery);
  EXPECT_EQ(parts_.planning.agreement().proposed_epoch(), 2u);
  EXPECT_EQ(parts_.roster[2].state, Seat::State::kPresent);
}

TEST_F(JoiningTest, ARankWithoutItsStateFailsTheJobAndIsRejected) {
  begin();
  parts_.roster.vacate(1, Seat::State::kAway, now_);
  join(1);
  EXPECT_EQ(parts_.outcome.culprit(), 1u);
  EXPECT_TRUE(std::holds_alternative<Rejected>(actions_.sends.back().message));
  join(0);
  EXPECT_EQ(parts_.admission.rejected(), 2u) << "the job has ended";
}

TEST_F(JoiningTest, TheFirstMemberWithAPlanBeginsTheReattachment) {
  join(0, resume_of(0, "digest"));
  EXPECT_TRUE(parts_.reattachment.is_under_way());
  EXPECT_EQ(parts_.planning.agreement().highest_epoch(), 1u);
  EXPECT_EQ(parts_.reattachment.asked(), 0u);
  join(1, resume_of(1, "another digest"));
  EXPECT_THAT(parts_.outcome.status()->message(), HasSubstr("follow different plans of epoch 1"));
}

TEST_F(JoiningTest, AReturningSummerWithAnotherPlanIsLost) {
  begin();
  for (const uint32_t seat : {1, 2}) parts_.roster.vacate(seat, Seat::State::kAway, now_);
  join(1, resume_of(1, proto::digest(parts_.planning.in_force())));
  EXPECT_EQ(parts_.roster[1].state, Seat::State::kPresent);
  EXPECT_THAT(actions_.notes, ElementsAre(HasSubstr("has returned, at epoch 1")));
  join(2, resume_of(2, "another digest"));
  EXPECT_THAT(actions_.warnings, ElementsAre(HasSubstr("is lost: it follows another plan")));
  EXPECT_EQ(parts_.phase(), Phase::kRunning);
}

}  // namespace
}  // namespace gleaner::coordinator
