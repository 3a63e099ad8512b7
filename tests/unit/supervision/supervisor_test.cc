#include "comm-lib/supervision/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"

namespace gleaner::supervision {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kWorker = 1;  // another worker
constexpr uint32_t kSummer = 2;  // on a CPU machine
constexpr absl::Duration kTick = absl::Milliseconds(5);

std::shared_ptr<plan::Plan> two_workers_and_a_summer() {
  auto plan = std::make_shared<plan::Plan>();
  plan->epoch = 1;
  plan->workers = 2;
  for (int i = 0; i < 3; ++i) plan->members.push_back({1e9, absl::StrCat("10.0.0.1:", i + 1), 1, {}});
  return plan;
}

// A supervisor, and connections whose behaviour a test sets.
class SupervisorTest : public testing::Test {
 protected:
  SupervisorTest() : supervisor_({.deadline = absl::Seconds(3), .plan_timeout = absl::Seconds(20)}) { follow(plan_); }

  void follow(std::shared_ptr<const plan::Plan> plan) { supervisor_.follow(std::move(plan), now_, actions_); }
  // Lets time pass, with sums due from the members of `due`.
  void pass(absl::Duration time, const std::vector<uint32_t>& due) {
    for (const absl::Duration end = now_ + time; now_ < end;) {
      now_ += kTick;
      tick(due);
    }
  }
  void tick(const std::vector<uint32_t>& due) {
    const size_t before = actions_.dials.size();
    supervisor_.tick(now_, due, actions_);
    if (!on_dial_) return;
    for (size_t i = before; i < actions_.dials.size(); ++i) on_dial_(actions_.dials[i]);
  }
  void connect_all() {
    on_dial_ = [this](uint32_t member) { supervisor_.on_connected(member); };
    tick({});
    for (uint32_t member = 0; member < 3; ++member) supervisor_.on_progress(member, actions_);
  }
  void close(uint32_t member, const absl::Status& why = absl::UnavailableError("connection reset")) {
    supervisor_.on_closed(member, why, now_, actions_);
  }
  std::vector<uint32_t> lost() const {
    std::vector<uint32_t> members;
    for (const Loss& loss : actions_.losses) members.push_back(loss.member);
    return members;
  }

  std::shared_ptr<plan::Plan> plan_ = two_workers_and_a_summer();
  absl::Duration now_ = absl::Seconds(100);
  Supervisor supervisor_;
  Actions actions_;
  std::function<void(uint32_t)> on_dial_;
};

TEST_F(SupervisorTest, ConnectsToAllMembersAtOnce) {
  tick({});
  EXPECT_THAT(actions_.dials, ElementsAre(0, 1, 2));
  EXPECT_FALSE(supervisor_.all_up());
  for (uint32_t member = 0; member < 3; ++member) supervisor_.on_connected(member);
  EXPECT_TRUE(supervisor_.all_up());
}

TEST_F(SupervisorTest, PausesDoubleUpToTheLongest) {
  std::vector<absl::Duration> dials;
  on_dial_ = [&](uint32_t member) {
    if (member != kSummer) return supervisor_.on_connected(member);
    dials.push_back(now_);
    close(kSummer);
  };
  pass(absl::Seconds(8), {});
  ASSERT_GT(dials.size(), 8u);
  EXPECT_EQ(dials[1] - dials[0], absl::Milliseconds(20));
  EXPECT_EQ(dials[2] - dials[1], absl::Milliseconds(40));
  EXPECT_EQ(dials.back() - dials[dials.size() - 2], absl::Seconds(1));
}

TEST_F(SupervisorTest, ACpuSummerOutOfReachIsLostAfterItsTimeout) {
  connect_all();
  close(kSummer);
  on_dial_ = [this](uint32_t member) { close(member); };
  pass(absl::Milliseconds(450), {kSummer});
  EXPECT_THAT(lost(), IsEmpty());
  pass(absl::Milliseconds(100), {kSummer});
  ASSERT_THAT(lost(), ElementsAre(kSummer));
  EXPECT_FALSE(actions_.losses[0].ends_job);
  EXPECT_THAT(actions_.losses[0].why.message(), HasSubstr("connection reset"));
  pass(absl::Seconds(5), {kSummer});
  EXPECT_THAT(lost(), ElementsAre(kSummer)) << "once";
}

TEST_F(SupervisorTest, AnotherWorkerIsLostAfterTheDeadlineAndEndsTheJob) {
  connect_all();
  close(kWorker);
  on_dial_ = [this](uint32_t member) { close(member); };
  pass(absl::Milliseconds(2900), {kWorker});
  EXPECT_THAT(lost(), IsEmpty());
  pass(absl::Milliseconds(200), {kWorker});
  ASSERT_THAT(lost(), ElementsAre(kWorker));
  EXPECT_TRUE(actions_.losses[0].ends_job);
  EXPECT_THAT(actions_.losses[0].why.message(), HasSubstr("worker/1 at 10.0.0.1:2 is lost"));
  EXPECT_THAT(actions_.warnings, testing::Not(IsEmpty())) << "warnings precede the loss";
}

TEST_F(SupervisorTest, NoWorkerIsLostWhileNothingIsDueFromIt) {
  connect_all();
  close(kWorker);
  on_dial_ = [this](uint32_t member) { close(member); };
  pass(absl::Minutes(1), {});
  EXPECT_THAT(lost(), IsEmpty());
  pass(absl::Milliseconds(2900), {kWorker});
  EXPECT_THAT(lost(), IsEmpty()) << "the limit starts when a sum is due";
}

TEST_F(SupervisorTest, WithoutACoordinatorALostWorkerIsMissedWhileNoResultArrives) {
  connect_all();
  close(kWorker);
  on_dial_ = [this](uint32_t member) { close(member); };
  pass(absl::Seconds(10), {kSummer});
  EXPECT_THAT(lost(), IsEmpty()) << "the coordinator tells of its loss";
  supervisor_.on_coordinator_lost();
  pass(absl::Seconds(10), {kSummer});
  EXPECT_THAT(lost(), IsEmpty()) << "a coordinator may return, and tell of it";
  supervisor_.on_coordinator_found();
  pass(absl::Seconds(1), {kSummer});
  supervisor_.on_coordinator_gone();
  pass(absl::Seconds(10), {});
  EXPECT_THAT(lost(), IsEmpty()) << "no sum waits for it";
  for (int i = 0; i < 10; ++i) {
    pass(absl::Seconds(2), {kSummer});
    supervisor_.on_result();
  }
  EXPECT_THAT(lost(), IsEmpty()) << "sums are made without it, as those that accumulate";
  pass(absl::Seconds(4), {kSummer});
  EXPECT_THAT(lost(), ElementsAre(kWorker));
  EXPECT_TRUE(actions_.losses[0].ends_job);
  EXPECT_THAT(actions_.losses[0].why.message(), HasSubstr("while sums wait, and no coordinator is left"));
}

// A worker that has left cleanly is out of reach, too, and nobody tells of that without a coordinator.
TEST_F(SupervisorTest, WithoutACoordinatorAWorkerThatOwesSumsIsNamedFirst) {
  connect_all();
  supervisor_.on_coordinator_gone();
  on_dial_ = [this](uint32_t member) { close(member); };
  close(0);
  pass(absl::Seconds(2), {kWorker});
  close(kWorker);
  pass(absl::Milliseconds(2900), {kWorker});
  EXPECT_THAT(lost(), IsEmpty());
  pass(absl::Milliseconds(200), {kWorker});
  EXPECT_THAT(lost(), ElementsAre(kWorker));
}

TEST_F(SupervisorTest, ALostWorkerIsMissedWhenTheCoordinatorDoesNotReturn) {
  connect_all();
  close(kWorker);
  on_dial_ = [this](uint32_t member) { close(member); };
  supervisor_.on_coordinator_lost();
  pass(absl::Seconds(19), {kSummer});
  EXPECT_THAT(lost(), IsEmpty());
  pass(absl::Seconds(2), {kSummer});
  EXPECT_THAT(lost(), ElementsAre(kWorker));
  EXPECT_THAT(actions_.losses[0].why.message(), HasSubstr("while sums wait, and the coordinator is out of reach, too"));
}

TEST_F(SupervisorTest, ASummerWithNothingDueHereIsLostAsWell) {
  connect_all();
  close(kSummer);
  on_dial_ = [this](uint32_t member) { close(member); };
  pass(absl::Milliseconds(1900), {});
  EXPECT_THAT(lost(), IsEmpty());
  pass(absl::Milliseconds(200), {});
  EXPECT_THAT(lost(), ElementsAre(kSummer));
}

TEST_F(SupervisorTest, AtTheEndNoSummerIsLost) {
  connect_all();
  supervisor_.set_ending();
  close(kSummer);
  on_dial_ = [this](uint32_t member) { close(member); };
  pass(absl::Minutes(1), {});
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(SupervisorTest, ConnectionsThatOpenAndBreakRepeatedlyAreALoss) {
  connect_all();
  close(kWorker);
  int connections = 0;
  on_dial_ = [&](uint32_t member) {
    supervisor_.on_connected(member);
    ++connections;
    close(member, absl::DataLossError("PUSH frame whose payload does not match its checksum"));
  };
  pass(absl::Milliseconds(3200), {kWorker});
  ASSERT_THAT(lost(), ElementsAre(kWorker));
  EXPECT_THAT(actions_.losses[0].why.message(), HasSubstr("connections to it broke without progress"));
  EXPECT_THAT(actions_.losses[0].why.message(), HasSubstr("checksum"));
  EXPECT_LT(connections, 12) << "pauses grow even though connections open";
  ASSERT_FALSE(actions_.warnings.empty());
  EXPECT_THAT(actions_.warnings[0].what, HasSubstr("break again and again"));
  EXPECT_THAT(actions_.warnings[0].last.message(), HasSubstr("checksum"));
}

TEST_F(SupervisorTest, TimeOnConnectionsWithoutProgressCounts) {
  connect_all();
  close(kWorker);
  // Each connection is up for a second, and then breaks.
  std::optional<absl::Duration> up_since;
  on_dial_ = [&](uint32_t member) {
    supervisor_.on_connected(member);
    up_since = now_;
  };
  for (int i = 0; i < 1000 && lost().empty(); ++i) {
    pass(kTick, {kWorker});
    if (!up_since.has_value() || now_ - *up_since < absl::Seconds(1)) continue;
    up_since.reset();
    close(kWorker);
  }
  EXPECT_THAT(lost(), ElementsAre(kWorker));
  EXPECT_LT(now_, absl::Seconds(105));
}

TEST_F(SupervisorTest, AConnectionThatStaysUpIsNeverLost) {
  connect_all();
  close(kWorker);
  pass(absl::Minutes(2), {kWorker});  // the other workers are slow, so the sums are late
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(SupervisorTest, ProgressResetsTheLimit) {
  connect_all();
  on_dial_ = [&](uint32_t member) {
    supervisor_.on_connected(member);
    supervisor_.on_progress(member, actions_);
    close(member);
  };
  close(kSummer);
  pass(absl::Minutes(1), {kSummer});
  EXPECT_THAT(lost(), IsEmpty());
  EXPECT_THAT(actions_.warnings, testing::Not(IsEmpty())) << "repeated breaks cause a warning nevertheless";
}

TEST_F(SupervisorTest, SilenceUsesUpTheLimit) {
  connect_all();
  on_dial_ = {};
  close(kSummer, absl::DeadlineExceededError("10.0.0.1:3 has been silent for 850ms"));
  pass(kTick, {kSummer});
  EXPECT_THAT(lost(), ElementsAre(kSummer));
}

TEST_F(SupervisorTest, ALostSummerThatAnswersAgainHasHealed) {
  connect_all();
  on_dial_ = {};
  close(kSummer);
  pass(absl::Seconds(1), {kSummer});
  ASSERT_THAT(lost(), ElementsAre(kSummer));
  supervisor_.on_connected(kSummer);
  EXPECT_THAT(actions_.healed, IsEmpty()) << "an open connection alone does not count as healed";
  supervisor_.on_progress(kSummer, actions_);
  EXPECT_THAT(actions_.healed, ElementsAre(kSummer));
  close(kSummer);
  pass(absl::Seconds(1), {kSummer});
  EXPECT_THAT(lost(), ElementsAre(kSummer, kSummer)) << "a healed summer may be lost again";
}

TEST_F(SupervisorTest, APauseOfThisProcessIsNoLoss) {
  connect_all();
  close(kWorker);
  now_ += absl::Minutes(1);
  tick({kWorker});
  EXPECT_THAT(lost(), IsEmpty());
}

TEST_F(SupervisorTest, ConnectionsFollowThePlan) {
  connect_all();
  auto without = two_workers_and_a_summer();
  without->epoch = 2;
  without->members[kSummer] = {};
  follow(without);
  ASSERT_EQ(actions_.drops.size(), 1u);
  EXPECT_EQ(actions_.drops[0].member, kSummer);
  EXPECT_TRUE(actions_.drops[0].was_up);
  EXPECT_TRUE(supervisor_.all_up()) << "all present members are connected";
  auto with = two_workers_and_a_summer();
  with->epoch = with->members[kSummer].since = 3;
  actions_.clear();
  follow(with);
  EXPECT_FALSE(supervisor_.all_up());
  EXPECT_THAT(actions_.drops, IsEmpty());
  tick({});
  EXPECT_THAT(actions_.dials, ElementsAre(kSummer));
}

TEST_F(SupervisorTest, AMemberWithoutACommonTransportIsLostAtOnce) {
  tick({});
  supervisor_.on_dial_failed(kWorker, absl::FailedPreconditionError("no transport in common"), now_, actions_);
  ASSERT_THAT(lost(), ElementsAre(kWorker));
  EXPECT_THAT(actions_.losses[0].why.message(), HasSubstr("no transport in common"));
}

}  // namespace
}  // namespace gleaner::supervision
