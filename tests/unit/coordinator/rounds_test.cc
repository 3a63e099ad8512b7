// Tests of elastic jobs: a round ends, and the next one begins with the workers that are present.
#include "coordinator/core/rounds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace gleaner::coordinator {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

Options elastic(uint32_t least, uint32_t workers, uint32_t most, uint32_t summers = 0) {
  Options options;
  options.workers = workers;
  options.min_workers = least;
  options.max_workers = most;
  options.summers = summers;
  options.bits_per_second = 1e9;
  return options;
}

// Rounds with a clock. Members that join follow every plan until they are told to join again. The test decides which
// members join again. A stream number is never used twice.
class RoundsTest : public testing::Test {
 protected:
  void begin(const Options& options) {
    options_ = options;
    rounds.emplace(options, now, Origin{});
    for (uint32_t i = 0; i < options.summers; ++i) join_summer(i);
    for (uint32_t i = 0; i < options.workers; ++i) join(i);
  }
  StreamId enter(Identity identity) {
    const StreamId stream = ++last_stream_;
    identity.address = absl::StrCat("10.0.0.1:", 7000 + stream);
    rounds->on_joined(stream, identity, std::nullopt, now, actions_);
    carry_out();
    return stream;
  }
  void join(uint32_t worker) {
    Identity identity;
    identity.index = worker;
    workers[worker] = enter(identity);
  }
  void join_summer(std::optional<uint32_t> index) {
    Identity identity;
    identity.role = Role::kSummer;
    identity.index = index;
    summers.push_back(enter(identity));
  }
  void kill(uint32_t worker) {
    rounds->on_disconnected(workers.at(worker), absl::UnavailableError("its connection broke"), actions_);
    carry_out();
  }
  void leave(uint32_t worker, bool again, const absl::Status& status = absl::OkStatus()) {
    rounds->on_left(workers.at(worker), status, {epoch(), again}, now, actions_);
    carry_out();
  }
  void come_again(std::vector<uint32_t> which) {
    for (const uint32_t worker : which) {
      leave(worker, true);
      join(worker);
    }
  }
  void pass(absl::Duration time) {
    for (const absl::Duration end = now + time; now < end;) {
      now += absl::Milliseconds(100);
      for (const auto& [worker, stream] : workers) rounds->core().on_heartbeat(stream, now);
      for (const StreamId stream : summers) rounds->core().on_heartbeat(stream, now);
      rounds->on_tick(now, actions_);
      carry_out();
    }
  }
  // Returns the workers of the round in rank order, by their own indices; empty while a round gathers its workers.
  std::vector<uint32_t> at_work() const {
    std::vector<uint32_t> indices;
    if (rounds->phase() != Phase::kRunning) return indices;
    const Roster& roster = rounds->core().roster();
    for (uint32_t seat = 0; seat < roster.ranks(); ++seat) indices.push_back(roster.index_of(seat));
    return indices;
  }
  uint32_t epoch() const { return rounds->core().plan().epoch; }

  absl::Duration now = absl::Seconds(1);
  std::optional<Rounds> rounds;
  std::map<uint32_t, StreamId> workers;
  std::vector<StreamId> summers;
  std::set<StreamId> regrouped;
  std::map<StreamId, std::string> failed, rejected;
  std::vector<std::string> warnings;
  std::map<StreamId, uint32_t> newcomers;
  bool follow = true;  // whether members acknowledge plans

 private:
  void carry_out() {
    rounds->go_on(now, actions_);
    while (!actions_.sends.empty()) {
      for (const Send& send : std::exchange(actions_.sends, {})) deliver(send);
      rounds->go_on(now, actions_);
    }
    const Actions done = std::exchange(actions_, {});
    warnings.insert(warnings.end(), done.warnings.begin(), done.warnings.end());
  }
  void deliver(const Send& send) {
    if (const auto* prepare = std::get_if<Prepare>(&send.message)) {
      if (follow) rounds->core().on_acknowledged(send.stream, prepare->plan->epoch, now, actions_);
    } else if (const auto* told = std::get_if<Newcomers>(&send.message)) {
      newcomers[send.stream] = told->workers;
    } else if (const auto* why = std::get_if<Failed>(&send.message)) {
      failed[send.stream] = std::string(why->status.message());
    } else if (const auto* refused = std::get_if<Rejected>(&send.message)) {
      rejected[send.stream] = std::string(refused->why.message());
    } else if (std::holds_alternative<Regroup>(send.message)) {
      regrouped.insert(send.stream);
    }
  }
  Options options_;
  Actions actions_;
  StreamId last_stream_ = 100;
};

TEST_F(RoundsTest, ALostWorkerFailsAJobThatIsNotElastic) {
  Options options = elastic(0, 3, 0);
  begin(options);
  EXPECT_THAT(at_work(), ElementsAre(0, 1, 2));
  kill(1);
  ASSERT_TRUE(rounds->outcome().has_value());
  EXPECT_THAT(rounds->outcome()->message(), HasSubstr("worker 1"));
  EXPECT_THAT(failed[workers[0]], HasSubstr("worker 1"));
  EXPECT_THAT(regrouped, IsEmpty());
}

TEST_F(RoundsTest, TheJobContinuesWithoutALostWorkerUnderAHigherEpoch) {
  begin(elastic(2, 4, 4));
  EXPECT_THAT(at_work(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(epoch(), 1u);
  kill(1);
  EXPECT_THAT(failed, IsEmpty());
  EXPECT_THAT(regrouped, UnorderedElementsAre(workers[0], workers[2], workers[3]));
  EXPECT_FALSE(rounds->outcome().has_value());
  come_again({3, 0});
  EXPECT_THAT(at_work(), IsEmpty()) << "the round waits for worker 2";
  come_again({2});
  EXPECT_THAT(at_work(), ElementsAre(0, 2, 3));
  EXPECT_EQ(rounds->number(), 2u);
  EXPECT_EQ(epoch(), 2u);
  for (const uint32_t worker : {0, 2, 3}) leave(worker, false);
  ASSERT_TRUE(rounds->outcome().has_value());
  EXPECT_TRUE(rounds->outcome()->ok()) << *rounds->outcome();
}

TEST_F(RoundsTest, MissingWorkersAreNamedWhileOthersWait) {
  Options options = elastic(2, 3, 3);
  options.regroup_timeout = absl::Seconds(30);
  options.start_timeout = absl::Minutes(1);
  rounds.emplace(options, now, Origin{});
  pass(absl::Seconds(10));
  EXPECT_THAT(warnings, IsEmpty()) << "no member waits";
  join(0);
  pass(absl::Seconds(1));
  EXPECT_THAT(warnings, ElementsAre("waiting for workers, 1 of 3 have joined: 10s of at most 1m"));
  join(1);
  join(2);
  ASSERT_THAT(at_work(), ElementsAre(0, 1, 2));
  warnings.clear();
  kill(1);
  come_again({0});
  pass(absl::Seconds(4));
  EXPECT_THAT(warnings, IsEmpty());
  pass(absl::Seconds(2));
  EXPECT_THAT(warnings, ElementsAre("waiting for worker 2 to come back: 5s of at most 1m"));
  warnings.clear();
  kill(2);
  pass(absl::Seconds(15));
  EXPECT_THAT(warnings, ElementsAre("waiting for workers, 1 of 2 have joined: 20s of at most 1m"));
}

TEST_F(RoundsTest, TheNextRoundDoesNotWaitForALostWorker) {
  begin(elastic(1, 4, 4));
  kill(1);
  kill(2);  // after it was told to join again
  come_again({0, 3});
  EXPECT_THAT(at_work(), ElementsAre(0, 3));
}

TEST_F(RoundsTest, TheNextRoundWaitsNeitherForAStoppedWorkerNorForOneWhoseStreamBrokeMeanwhile) {
  begin(elastic(1, 4, 4));
  workers.erase(2);  // it sends no heartbeats any more
  pass(absl::Seconds(5));
  kill(1);
  EXPECT_THAT(at_work(), ElementsAre(0, 1, 2, 3)) << "worker 2 may be the cause";
  pass(absl::Seconds(6));
  EXPECT_THAT(rounds->core().outcome().status()->message(), HasSubstr("worker 2 at"));
  come_again({0, 3});
  EXPECT_THAT(at_work(), ElementsAre(0, 3));
}

TEST_F(RoundsTest, TheNextRoundDoesNotWaitForAReturnedWorkerThatIsLost) {
  begin(elastic(1, 3, 3));
  kill(1);
  come_again({0});
  kill(0);
  come_again({2});
  EXPECT_THAT(at_work(), ElementsAre(2));
}

TEST_F(RoundsTest, TheNextRoundDoesNotWaitForAWorkerThatLeaves) {
  begin(elastic(1, 3, 3));
  kill(1);
  leave(2, false, absl::InternalError("it can't go on"));
  come_again({0});
  EXPECT_THAT(at_work(), ElementsAre(0));
}

TEST_F(RoundsTest, TheNextRoundWaitsForAWorkerUpToTheTimeout) {
  begin(elastic(1, 3, 3));
  kill(1);
  leave(2, true);
  come_again({0});
  pass(absl::Seconds(29));
  EXPECT_THAT(at_work(), IsEmpty());
  pass(absl::Seconds(2));
  EXPECT_THAT(at_work(), ElementsAre(0));
}

TEST_F(RoundsTest, AWorkerThatEndedInErrorIsLost) {
  begin(elastic(2, 3, 3));
  leave(0, false, absl::InternalError("division by zero"));
  come_again({1, 2});
  EXPECT_THAT(at_work(), ElementsAre(1, 2));
}

TEST_F(RoundsTest, AWorkerThatNoticedTheLossFirstJoinsTheNextRound) {
  begin(elastic(2, 3, 3));
  leave(0, true, absl::UnavailableError("worker 2 is out of reach"));
  join(0);
  kill(2);
  come_again({1});
  EXPECT_THAT(at_work(), ElementsAre(0, 1));
}

TEST_F(RoundsTest, WithTooFewWorkersTheJobWaitsAndThenFails) {
  begin(elastic(2, 2, 4));
  kill(1);
  come_again({0});
  pass(absl::Seconds(59));
  EXPECT_FALSE(rounds->outcome().has_value());
  join(7);
  EXPECT_THAT(at_work(), ElementsAre(0, 7));
  kill(7);
  come_again({0});
  pass(absl::Seconds(61));
  ASSERT_TRUE(rounds->outcome().has_value());
  EXPECT_THAT(rounds->outcome()->message(), HasSubstr("1 worker has joined, of at least 2"));
  EXPECT_THAT(rejected[workers[0]], HasSubstr("of at least 2"));
}

TEST_F(RoundsTest, AWaitingWorkerIsAnnouncedAndJoinsTheNextRound) {
  begin(elastic(2, 2, 3));
  join(5);
  join(4);
  EXPECT_THAT(at_work(), ElementsAre(0, 1));
  EXPECT_EQ(newcomers[workers[0]], 1u) << "the job admits one more worker";
  EXPECT_EQ(newcomers[workers[1]], 1u);
  come_again({0, 1});
  EXPECT_THAT(at_work(), ElementsAre(0, 1, 4));
  EXPECT_EQ(newcomers.count(workers[0]), 0u) << "the job is full";
  kill(0);
  come_again({1, 4});
  EXPECT_THAT(at_work(), ElementsAre(1, 4, 5));
}

TEST_F(RoundsTest, AWaitingWorkerThatLeavesIsNotCounted) {
  begin(elastic(2, 2, 3));
  join(5);
  kill(5);
  EXPECT_EQ(newcomers[workers[0]], 0u);
}

TEST_F(RoundsTest, ARestartedWorkerWaitsUntilTheOldProcessIsLost) {
  begin(elastic(2, 3, 3));
  const StreamId old = workers[2];
  join(2);
  EXPECT_THAT(rejected[workers[2]], HasSubstr("is a member of this round already"));
  workers[2] = old;
  kill(2);
  join(2);
  come_again({0, 1});
  EXPECT_THAT(at_work(), ElementsAre(0, 1, 2));
}

TEST_F(RoundsTest, SummersJoinTheNextRound) {
  begin(elastic(1, 2, 3, 2));
  EXPECT_EQ(rounds->core().plan().summers(), 2u);
  kill(0);
  EXPECT_THAT(regrouped, UnorderedElementsAre(workers[1], summers[0], summers[1]));
  join_summer(1);  // the other summer was killed
  come_again({1});
  EXPECT_THAT(at_work(), IsEmpty()) << "the round waits a second for summers";
  pass(absl::Seconds(2));
  EXPECT_THAT(at_work(), ElementsAre(1));
  EXPECT_EQ(rounds->core().plan().summers(), 1u);
  EXPECT_EQ(rounds->core().roster().name(1), "summer 1");
  join_summer(std::nullopt);
  EXPECT_EQ(rounds->core().plan().summers(), 2u);
}

TEST_F(RoundsTest, AWaitingSummerIsToldThatAnotherSummerOfItsIndexHasReplacedIt) {
  begin(elastic(1, 2, 3, 1));
  kill(0);
  join_summer(0);
  EXPECT_THAT(rejected, IsEmpty());
  join_summer(0);
  EXPECT_THAT(rejected[summers[1]], HasSubstr("another summer 0, at 10.0.0.1:"));
  EXPECT_FALSE(rejected.contains(summers[2]));
  come_again({1});
  EXPECT_THAT(at_work(), ElementsAre(1));
  EXPECT_EQ(rounds->core().plan().summers(), 1u);
}

TEST_F(RoundsTest, TheRemainingWorkersContinueAfterOthersHaveFinished) {
  begin(elastic(3, 3, 3));
  leave(0, false);
  kill(1);
  come_again({2});
  EXPECT_THAT(at_work(), IsEmpty()) << "two workers are fewer than the minimum of three";
  pass(absl::Seconds(61));
  EXPECT_TRUE(rounds->outcome().has_value());
  begin(elastic(2, 3, 3));
  leave(0, false);
  kill(1);
  come_again({2});
  EXPECT_THAT(at_work(), ElementsAre(2));
}

TEST_F(RoundsTest, AWorkerThatFinishesBetweenTwoRoundsCountsAsDone) {
  begin(elastic(2, 2, 2));
  kill(1);
  leave(0, false);
  join(1);
  EXPECT_THAT(at_work(), ElementsAre(1));
}

TEST_F(RoundsTest, ALossWhileARoundBeginsEndsThatRound) {
  begin(elastic(1, 3, 3));
  kill(0);
  follow = false;  // members do not acknowledge the plan of round 2
  come_again({1, 2});
  EXPECT_EQ(rounds->number(), 2u);
  EXPECT_THAT(at_work(), IsEmpty());
  kill(2);
  follow = true;
  come_again({1});
  EXPECT_THAT(at_work(), ElementsAre(1));
  EXPECT_EQ(rounds->number(), 3u);
  EXPECT_EQ(epoch(), 3u) << "epoch 2 was proposed to members";
}

TEST_F(RoundsTest, AnErrorOtherThanALossFailsTheJob) {
  begin(elastic(1, 2, 2));
  Actions actions;
  rounds->core().on_declared(workers[0], {{"a", 10}}, {}, now, actions);
  rounds->core().on_declared(workers[1], {{"a", 11}}, {}, now, actions);
  rounds->go_on(now, actions);
  ASSERT_TRUE(rounds->outcome().has_value());
  EXPECT_THAT(rounds->outcome()->message(), HasSubstr("'a'"));
}

TEST_F(RoundsTest, StopReachesWorkersBetweenTwoRounds) {
  begin(elastic(1, 3, 3));
  kill(0);
  come_again({1});
  Actions actions;
  rounds->stop(absl::CancelledError("told to stop"), actions);
  EXPECT_TRUE(absl::IsCancelled(*rounds->outcome()));
  std::set<StreamId> told;
  for (const Send& send : actions.sends) told.insert(send.stream);
  EXPECT_THAT(told, UnorderedElementsAre(workers[1], workers[2]));
}

TEST_F(RoundsTest, ElasticOptionsAreChecked) {
  EXPECT_TRUE(validate(elastic(1, 2, 3)).ok());
  EXPECT_FALSE(validate(elastic(3, 2, 3)).ok());
  EXPECT_FALSE(validate(elastic(1, 4, 3)).ok());
  EXPECT_FALSE(validate(elastic(0, 2, 3)).ok());
  Options options = elastic(1, 2, 3);
  options.local_ranks = 2;
  EXPECT_FALSE(validate(options).ok());
}

}  // namespace
}  // namespace gleaner::coordinator
