#include "coordinator/core/departures.h"

#include <gmock/gmock.h>

#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Two workers of two local ranks, and one summer.
class DeparturesTest : public testing::Test {
 protected:
  DeparturesTest() { seat_all(roster_, options_); }
  // Returns the streams that were sent a message of this type since the last call.
  template <typename Type>
  std::vector<StreamId> receivers() {
    std::vector<StreamId> streams;
    for (const Send& send : actions_.sends) {
      if (std::holds_alternative<Type>(send.message)) streams.push_back(send.stream);
    }
    return streams;
  }

  const Options options_ = job_of(2, 1, 2);
  Roster roster_{options_};
  Outcome outcome_{&options_, &roster_};
  EfficiencyMeter efficiency_{roster_.ranks()};
  Departures departures_{&options_, &roster_, &outcome_, &efficiency_};
  Actions actions_;
  absl::Duration now_ = absl::Seconds(100);
};

TEST_F(DeparturesTest, TheJobIsEndingWithTheFirstRankThatLeaves) {
  EXPECT_FALSE(departures_.is_ending());
  departures_.leave(1, now_, actions_);
  EXPECT_TRUE(departures_.is_ending());
  EXPECT_THAT(receivers<Goodbye>(), ElementsAre(101));
  EXPECT_THAT(receivers<Ending>(), ElementsAre(100, 102, 103, 104));
  EXPECT_EQ(roster_[1].state, Seat::State::kLeft);
  actions_ = {};
  departures_.leave(0, now_ + absl::Seconds(1), actions_);
  EXPECT_THAT(receivers<Ending>(), ElementsAre()) << "members know it";
  EXPECT_EQ(departures_.first_leave_at(), now_);
}

TEST_F(DeparturesTest, RanksLearnWhichWorkersHaveLeft) {
  departures_.leave(1, now_, actions_);
  actions_ = {};
  departures_.on_tick(actions_);
  EXPECT_THAT(receivers<Ending>(), ElementsAre()) << "local rank 0 of worker 0 is there";
  departures_.leave(0, now_, actions_);
  actions_ = {};
  departures_.on_tick(actions_);
  EXPECT_THAT(receivers<Ending>(), ElementsAre(102, 103)) << "those that are there";
  EXPECT_EQ(std::get<Ending>(actions_.sends.at(0).message).left, std::vector<uint32_t>{0});
  actions_ = {};
  departures_.on_tick(actions_);
  EXPECT_THAT(receivers<Ending>(), ElementsAre()) << "all have been told";
  EXPECT_EQ(roster_.workers_that_left(), std::vector<uint32_t>{0});
}

TEST_F(DeparturesTest, ARankBehindThePlanMustStay) {
  plan::Plan plan;
  plan.epoch = 3;
  EXPECT_TRUE(departures_.must_stay(2, plan));
  EXPECT_FALSE(departures_.must_stay(3, plan));
}

TEST_F(DeparturesTest, AWorkerEndsWithAllItsLocalRanks) {
  departures_.leave(2, now_, actions_);
  EXPECT_FALSE(departures_.has_worker_left(2));
  actions_ = {};
  departures_.end_worker(2, now_, actions_);
  EXPECT_TRUE(departures_.has_worker_left(2));
  EXPECT_THAT(receivers<Goodbye>(), ElementsAre(103)) << "the other local rank has it already";
  EXPECT_THAT(actions_.notes, ElementsAre("worker 1 has ended"));
  EXPECT_FALSE(departures_.have_all_ranks_left());
  departures_.end_worker(0, now_, actions_);
  EXPECT_TRUE(departures_.have_all_ranks_left());
}

TEST_F(DeparturesTest, ARankThatLeavesInErrorIsTheCulprit) {
  const Failure failure = departures_.leave_in_error(3, absl::UnavailableError("broken"), now_, actions_);
  EXPECT_THAT(failure.status.message(), HasSubstr("worker 1 (local rank 1) at 10.0.0.3:7000 left with an error"));
  EXPECT_EQ(failure.culprit, 3u);
  EXPECT_TRUE(failure.is_loss);
  EXPECT_FALSE(departures_.is_ending());
  EXPECT_THAT(receivers<Goodbye>(), ElementsAre(103));
  const Failure early = departures_.leave_in_error(0, absl::OkStatus(), now_, actions_);
  EXPECT_THAT(early.status.message(), HasSubstr("left before the job had begun"));
}

TEST_F(DeparturesTest, RanksThatDifferKeepTheCode) {
  const Failure failure = departures_.leave_in_error(3, absl::InvalidArgumentError("ranks differ"), now_, actions_);
  EXPECT_TRUE(absl::IsInvalidArgument(failure.status)) << failure.status;
  EXPECT_TRUE(absl::IsUnavailable(departures_.leave_in_error(2, absl::InternalError("a bug"), now_, actions_).status));
}

TEST_F(DeparturesTest, ALocalRankThatLeftEarlierIsTheCulprit) {
  outcome_.on_left_cleanly(2);
  departures_.leave(2, now_, actions_);
  const Failure failure = departures_.leave_in_error(3, absl::UnavailableError("broken"), now_, actions_);
  EXPECT_THAT(failure.status.message(), HasSubstr("worker 1 (local rank 0) finished; worker 1 (local rank 1) was at"));
  EXPECT_EQ(failure.culprit, 2u);
}

}  // namespace
}  // namespace gleaner::coordinator
