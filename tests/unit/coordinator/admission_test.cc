#include "coordinator/core/admission.h"

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
  // The member of this seat returns with the plan of `epoch`.
  absl::StatusOr<uint32_t> return_to(uint32_t seat, const std::string& session, uint32_t epoch) {
    return admission_.seat_again(9, identity_of(options_, seat), {session, epoch, 0, "digest", seat}, {});
  }
  void join_successor(uint32_t seat, const std::string& session) {
    const Admission::Decision decision{Kind::kJoins, seat};
    ASSERT_EQ(successor_.seat_new(decision, 100 + seat, identity_of(options_, seat), session, false, {}, actions_),
              absl::OkStatus());
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
    const auto decision = admission_.decide(identity_of(options_, seat), false);
    ASSERT_TRUE(decision.ok()) << decision.status();
    EXPECT_EQ(decision->kind, Kind::kJoins);
    EXPECT_EQ(decision->seat, seat);
  }
}

TEST_F(AdmissionTest, ARankThatReturnsWithoutItsStateIsLost) {
  begin();
  roster_.vacate(1, Seat::State::kAway, {});
  const auto decision = admission_.decide(identity_of(options_, 1), false);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->kind, Kind::kIsLost);
  EXPECT_EQ(decision->seat, 1u);
}

TEST_F(AdmissionTest, ASummerMayJoinTheRunningJob) {
  begin();
  Identity another = identity_of(options_, 2);
  another.index = 5;
  EXPECT_TRUE(absl::IsFailedPrecondition(admission_.decide(another, true).status())) << "the job is ending";
  const auto decision = admission_.decide(another, false);
  EXPECT_EQ(decision->kind, Kind::kJoinsLate);
  EXPECT_EQ(decision->seat, 3u);
  EXPECT_FALSE(decision->replaces);
  EXPECT_EQ(admission_.seat_new(*decision, 9, another, "session 0", false, {}, actions_), absl::OkStatus());
  EXPECT_EQ(roster_[3].stream, 9u);
  EXPECT_EQ(std::get<Welcome>(actions_.sends[0].message).session, "session 1") << "the session of the running job";
  reattachment_.begin(actions_);
  EXPECT_TRUE(absl::IsUnavailable(admission_.decide(another, false).status())) << "the plan is not known";
}

TEST_F(AdmissionTest, ASummerReplacesOneThatIsAwayButNoneThatIsPresent) {
  begin();
  const Identity again = identity_of(options_, 2);
  EXPECT_TRUE(absl::IsUnavailable(admission_.decide(again, false).status()));
  roster_.vacate(2, Seat::State::kAway, {});
  const auto decision = admission_.decide(again, false);
  ASSERT_TRUE(decision.ok()) << decision.status();
  EXPECT_EQ(decision->seat, 2u);
  EXPECT_TRUE(decision->replaces);
}

TEST_F(AdmissionTest, RejectedMembersAreCounted) {
  admission_.reject(9, absl::NotFoundError("no seat"), actions_);
  EXPECT_EQ(admission_.rejected(), 1u);
  EXPECT_THAT(actions_.warnings, ElementsAre("a member was not admitted: no seat"));
  EXPECT_EQ(std::get<Rejected>(actions_.sends[0].message).why, absl::NotFoundError("no seat"));
}

TEST_F(AdmissionTest, WaitsNoLongerForASummerThatEndedBeforeItJoined) {
  EXPECT_TRUE(admission_.stop_waiting_for(2, "it has ended", {}, actions_));
  EXPECT_EQ(roster_[2].state, Seat::State::kVacant);
  EXPECT_FALSE(admission_.stop_waiting_for(2, "it has ended", {}, actions_));
  EXPECT_THAT(actions_.notes, ElementsAre("the job does not wait for summer 0 any more: it has ended"));
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
  roster_.vacate(1, Seat::State::kAway, {});
  EXPECT_TRUE(absl::IsFailedPrecondition(return_to(1, "session 0", 1).status()));
  EXPECT_TRUE(absl::IsUnavailable(return_to(1, "session 1", 2).status()));
  EXPECT_EQ(*return_to(1, "session 1", 1), 1u);
  EXPECT_EQ(roster_[1].committed, 1u);
  EXPECT_EQ(roster_[1].digest, "digest");
}

TEST_F(AdmissionTest, TakesUpASessionAndRejectsSummersThatJoinedBefore) {
  for (const uint32_t seat : {0, 2}) join_successor(seat, "session 0");
  actions_ = {};
  EXPECT_EQ(successor_.take_up("session 0", {}, actions_), std::nullopt);
  EXPECT_EQ(successor_.session(), "session 0");
  EXPECT_THAT(receivers(), ElementsAre(102));
  EXPECT_EQ(roster_[2].state, Seat::State::kEmpty);
  join_successor(1, "session 1");
  EXPECT_EQ(successor_.take_up("session 0", {}, actions_), 1u) << "the member has not prepared a plan of that session";
}

TEST_F(AdmissionTest, CorrectsWrongWelcomes) {
  for (const uint32_t seat : {0, 1, 2}) join_successor(seat, seat == 1 ? "session 0" : "session 1");
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
  roster_.vacate(2, Seat::State::kAway, {});
  EXPECT_EQ(*return_to(2, "session 1", 1), 2u);
  roster_.vacate(2, Seat::State::kVacant, {});
  EXPECT_TRUE(absl::IsAborted(return_to(2, "session 1", 1).status()));
}

}  // namespace
}  // namespace gleaner::coordinator
