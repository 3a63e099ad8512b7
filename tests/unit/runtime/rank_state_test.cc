// Tests of the state of a rank that users' threads see and wait for.
#include "comm-lib/runtime/rank_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace gleaner::runtime {
namespace {

using ::testing::HasSubstr;

control::Welcome welcome() {
  control::Welcome welcome;
  welcome.member = 3;
  welcome.workers = 4;
  welcome.local_ranks = 2;
  welcome.summers = 5;
  welcome.deadline = absl::Minutes(1);
  return welcome;
}

TEST(RankState, OpensWhenItIsConnected) {
  RankState state(0);
  EXPECT_TRUE(state.is_opening());
  EXPECT_TRUE(absl::IsFailedPrecondition(state.usable()));
  std::thread io([&] { state.set_connected("tcp: summer/0"); });
  EXPECT_EQ(state.wait_until_open(absl::InfiniteDuration()), absl::OkStatus());
  io.join();
  EXPECT_EQ(state.usable(), absl::OkStatus());
  EXPECT_FALSE(state.is_opening());
  EXPECT_EQ(state.transports(), "tcp: summer/0");
}

TEST(RankState, AStartThatTakesTooLongNamesTheMissingEvent) {
  RankState state(0);
  EXPECT_THAT(state.wait_until_open(absl::ZeroDuration()).message(), HasSubstr("still waiting for the coordinator"));
  state.set_waiting_for("summer/1");
  const absl::Status status = state.wait_until_open(absl::Milliseconds(1));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(status.message(), HasSubstr("still waiting for summer/1"));
}

TEST(RankState, AFailureEndsEveryWaitAndTheFirstOneStays) {
  RankState opening(0);
  std::thread io([&] { EXPECT_TRUE(opening.fail(absl::UnavailableError("worker/1 is lost"))); });
  EXPECT_TRUE(absl::IsUnavailable(opening.wait_until_open(absl::InfiniteDuration())));
  io.join();
  EXPECT_FALSE(opening.fail(absl::AbortedError("later")));
  opening.close();
  opening.set_connected("tcp");
  EXPECT_TRUE(absl::IsUnavailable(opening.usable()));

  RankState leaving(0);
  control::Welcome patient = welcome();
  patient.deadline = absl::InfiniteDuration();
  leaving.set_welcome(patient);
  leaving.set_connected("tcp");
  std::thread failing([&] { leaving.fail(absl::UnavailableError("worker/1 is lost")); });
  EXPECT_TRUE(absl::IsUnavailable(leaving.wait_until_quiet()));
  failing.join();
}

TEST(RankState, AClosedSessionStaysClosed) {
  RankState state(0);
  state.set_connected("tcp");
  state.close();
  EXPECT_THAT(state.usable().message(), HasSubstr("is closed"));
  EXPECT_FALSE(state.fail(absl::UnavailableError("late")));
  state.set_connected("tcp");
  EXPECT_FALSE(state.usable().ok());
}

TEST(RankState, WaitsForRequestsInFlightUpToTheDeadline) {
  RankState state(0);
  state.set_welcome(welcome());
  state.set_connected("tcp");
  std::thread io([&] { state.set_quiet(true); });
  EXPECT_EQ(state.wait_until_quiet(), absl::OkStatus());
  io.join();
  state.set_quiet(false);
  control::Welcome impatient = welcome();
  impatient.deadline = absl::Milliseconds(1);
  state.set_welcome(impatient);
  EXPECT_EQ(state.wait_until_quiet(), absl::OkStatus()) << "the rank then leaves all the same";
}

TEST(RankState, KnowsItsPlaceInTheJob) {
  RankState state(1);
  state.set_welcome(welcome());
  state.set_summers(2);
  state.set_newcomers(6);
  const gln_rank_info info = state.rank_info();
  EXPECT_EQ(info.worker, 3u);
  EXPECT_EQ(info.workers, 4u);
  EXPECT_EQ(info.local_rank, 1u);
  EXPECT_EQ(info.local_ranks, 2u);
  EXPECT_EQ(info.rank, 7u);
  EXPECT_EQ(info.ranks, 8u);
  EXPECT_EQ(info.summers, 2u) << "the number of summers in the plan";
  EXPECT_EQ(state.newcomers(), 6u);
  EXPECT_FALSE(state.is_elastic());
  EXPECT_EQ(state.deadline(), absl::Minutes(1));
}

}  // namespace
}  // namespace gleaner::runtime
