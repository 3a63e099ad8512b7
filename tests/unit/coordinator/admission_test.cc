#include "coordinator/admission.h"

#include <gmock/gmock.h>

#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using Kind = Admission::Decision::Kind;
using testing::ElementsAre;

// Two workers and one summer. A member joins a job that has not begun, unless a test begins the job.
class AdmissionTest : public testing::Test {
 protected:
  static Origin origin(bool may_resume) { return {"session 1", may_resume, 0, 7}; }
  void begin() {
    seat_all(roster_, options_);
    ASSERT_EQ(planning_.propose_first({}, actions_), absl::OkStatus());
    for (uint32_t seat = 0; seat < roster_.size(); ++seat) roster_[seat].acknowledged = 1;
    ASSERT_TRUE(planning_.commit_if_acknowledged({}, actions_));
    actions_ = {};
  }
  std::vector<StreamId> receivers() const {
    std::vector<StreamId> streams;
    for (const Send& send : actions_.sends) streams.push_back(send.stream);
    return streams;
  }

  const Options options_ = job_of(2, 1);
  Roster roster_{options_};
  Planning planning_{&options_, &roster_, 0};
  Reattachment reattachment_{&options_, &roster_};
  Admission admission_{&options_, origin(false), &roster_, &planning_, &reattachment_};
  Admission successor_{&options_, origin(true), &roster_, &planning_, &reattachment_};
  Actions actions_;
};

TEST_F(AdmissionTest, MembersTakeTheirSeatsBeforeTheJobBegins) {
  for (const uint32_t seat : {1, 2}) {
    const auto decision = admission_.decide(identity_of(options_, seat));
    ASSERT_TRUE(decision.ok()) << decision.status();
    EXPECT_EQ(decision->kind, Kind::kJoins);
    EXPECT_EQ(decision->seat, seat);
  }
}

TEST_F(AdmissionTest, ARankThatReturnsWithoutItsStateIsLost) {
  begin();
  roster_.vacate(1, Seat::State::kAway, {});
  const auto decision = admission_.decide(identity_of(options_, 1));
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->kind, Kind::kIsLost);
  EXPECT_EQ(decision->seat, 1u);
}

TEST_F(AdmissionTest, ASummerMayJoinTheRunningJob) {
  begin();
  Identity another = identity_of(options_, 2);
  another.index = 5;
  EXPECT_EQ(admission_.decide(another)->kind, Kind::kJoinsLate);
  EXPECT_EQ(admission_.check_late(false), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(admission_.check_late(true)));
  reattachment_.begin();
  EXPECT_TRUE(absl::IsUnavailable(admission_.check_late(false)));
  EXPECT_TRUE(absl::IsUnavailable(admission_.decide(another).status())) << "the plan is not known";
}

TEST_F(AdmissionTest, OnlyACoordinatorThatMayResumeTakesUpAJob) {
  const Resume resume{"session 0", 4, 0, "", 0, 7};
  EXPECT_TRUE(absl::IsFailedPrecondition(admission_.check_coordinator(resume)));
  EXPECT_EQ(successor_.check_coordinator(resume), absl::OkStatus());
  const Resume later{"session 0", 4, 0, "", 0, 8};
  EXPECT_TRUE(absl::IsUnavailable(successor_.check_coordinator(later))) << "a later coordinator has welcomed it";
}

TEST_F(AdmissionTest, AMemberOfAnotherRunOrALaterPlanIsRefused) {
  begin();
  EXPECT_EQ(admission_.check_session({"session 1", 1}), absl::OkStatus());
  EXPECT_TRUE(absl::IsFailedPrecondition(admission_.check_session({"session 0", 1})));
  EXPECT_TRUE(absl::IsUnavailable(admission_.check_session({"session 1", 2})));
}

TEST_F(AdmissionTest, TakesUpASessionAndRejectsSummersThatJoinedBefore) {
  for (const uint32_t seat : {0, 2}) {
    seat_member(roster_, options_, seat);
    successor_.welcome(seat, "session 0", false, actions_);
  }
  actions_ = {};
  EXPECT_EQ(successor_.take_up("session 0", {}, actions_), std::nullopt);
  EXPECT_EQ(successor_.session(), "session 0");
  EXPECT_THAT(receivers(), ElementsAre(102));
  EXPECT_EQ(roster_[2].state, Seat::State::kEmpty);
  seat_member(roster_, options_, 1);
  successor_.welcome(1, "session 1", false, actions_);
  EXPECT_EQ(successor_.take_up("session 0", {}, actions_), 1u) << "the member has not prepared a plan of that session";
}

TEST_F(AdmissionTest, CorrectsWrongWelcomes) {
  seat_all(roster_, options_);
  for (const uint32_t seat : {0, 1, 2})
    successor_.welcome(seat, seat == 1 ? "session 0" : "session 1", false, actions_);
  actions_ = {};
  successor_.correct_welcomes(actions_);
  EXPECT_THAT(receivers(), ElementsAre(101));
  EXPECT_EQ(std::get<Welcome>(actions_.sends[0].message).session, "session 1");
}

TEST_F(AdmissionTest, AMemberOfTheJobLearnsTheOutcomeWhenItReturns) {
  EXPECT_EQ(admission_.send_outcome(9, Resume{"session 1", 1}, absl::InternalError("broken"), actions_),
            absl::OkStatus());
  ASSERT_EQ(actions_.sends.size(), 2u);
  EXPECT_EQ(std::get<Failed>(actions_.sends[1].message).status, absl::InternalError("broken"));
  EXPECT_FALSE(admission_.send_outcome(9, Resume{"session 0", 1}, absl::OkStatus(), actions_).ok());
  EXPECT_FALSE(admission_.send_outcome(9, std::nullopt, absl::OkStatus(), actions_).ok());
}

TEST_F(AdmissionTest, ASummerThatWasDeclaredLostJoinsAsANewSummer) {
  begin();
  const Identity summer = identity_of(options_, 2);
  EXPECT_EQ(*admission_.find_seat(summer, {"session 1", 1, 0, "", 2}), 2u);
  roster_.vacate(2, Seat::State::kVacant, {});
  EXPECT_TRUE(absl::IsAborted(admission_.find_seat(summer, {"session 1", 1, 0, "", 2}).status()));
}

}  // namespace
}  // namespace gleaner::coordinator
