// Tests that the coordinator names the rank that stopped, in whatever order reports, exits and broken connections of
// other ranks arrive.
#include "coordinator/failures/suspects.h"

#include <gmock/gmock.h>

#include "tests/unit/coordinator/fleet.h"
#include "tests/unit/coordinator/seats.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr absl::Duration kDeadline = absl::Seconds(10);

TEST(FindSuspects, AreRanksThatWereSilentForLongerThanTheCulprit) {
  const Options options = job_of(4, 1);
  Roster roster(options);
  seat_all(roster, options);
  const absl::Duration now = absl::Seconds(20);
  const absl::Duration silences[] = {absl::Seconds(1), absl::Seconds(3), absl::Seconds(5), absl::Seconds(2),
                                     absl::Seconds(9)};
  for (uint32_t seat = 0; seat < roster.size(); ++seat) roster[seat].last_heard = now - silences[seat];
  EXPECT_THAT(find_suspects(options, roster, 0, now), ElementsAre(1, 2)) << "neither a silent summer";
  EXPECT_THAT(find_suspects(options, roster, 1, now), ElementsAre(2));
  EXPECT_THAT(find_suspects(options, roster, 2, now), IsEmpty());
  roster.vacate(1, Seat::State::kLeft, now);
  roster.vacate(2, Seat::State::kAway, now);
  EXPECT_THAT(find_suspects(options, roster, 0, now), ElementsAre(2)) << "a rank that left is none";
  Options hasty = options;
  hasty.deadline = absl::Seconds(1);
  EXPECT_THAT(find_suspects(hasty, roster, 0, now), ElementsAre(2, 3));
}

// An act of another rank, of which the coordinator learns while a rank is stopped.
enum class Event {
  kExits,         // its launcher reports an exit
  kDisconnects,   // its connection breaks
  kReports,       // it can't reach a third rank
  kLeavesInError  // it sends Leave with an error
};

struct Order {
  std::string name;
  std::vector<uint32_t> stopped;
  uint32_t other = 0;  // the rank of the events
  std::vector<Event> events;
  uint32_t accused = 0;  // the rank that `other` can't reach
  uint32_t summers = 0;
  bool has_launcher = true;
};

class StoppedRank : public testing::TestWithParam<Order> {
 protected:
  static Options options_of(const Order& order) {
    Options options = coordinator::options(4, order.summers);
    options.deadline = kDeadline;
    options.launcher.exit_timeout = order.has_launcher ? kExitTimeout : absl::ZeroDuration();
    return options;
  }
  void carry_out(Fleet& fleet, Event event) const {
    switch (event) {
      case Event::kExits:
        fleet.core->on_exited(order_.other, 0, {false, "exited with status 5"}, fleet.actions);
        break;
      case Event::kDisconnects:
        fleet.cut(order_.other);
        break;
      case Event::kReports:
        fleet.fault(order_.other, order_.accused);
        break;
      case Event::kLeavesInError:
        fleet.core->on_left(fleet.members[order_.other].stream, absl::UnavailableError("gave up"), 1, fleet.now,
                            fleet.actions);
        break;
    }
    fleet.collect();
  }

  const Order order_ = GetParam();
};

TEST_P(StoppedRank, IsNamedToEveryRank) {
  for (const absl::Duration after : {absl::Seconds(3), kDeadline - absl::Milliseconds(100)}) {
    Fleet fleet(options_of(order_));
    fleet.start();
    for (const uint32_t rank : order_.stopped) fleet.members[rank].is_stopped = true;
    fleet.pass(after);
    for (const Event event : order_.events) carry_out(fleet, event);
    EXPECT_EQ(fleet.outcome(), "none") << "worker " << order_.stopped.front() << " may be the cause";
    fleet.pass(kDeadline - after + kExitTimeout + absl::Milliseconds(500));
    const uint32_t named = fleet.core->outcome().culprit().value_or(UINT32_MAX);
    EXPECT_THAT(order_.stopped, Contains(named));
    EXPECT_THAT(fleet.outcome(), AllOf(StartsWith(absl::StrCat("worker ", named, " at ")),
                                       HasSubstr("is lost: it has sent no message for 10s")));
    fleet.settle();
    for (uint32_t rank = 0; rank < 4; ++rank) {
      const bool has_left = fleet.core->roster()[rank].state == Seat::State::kLeft;
      if (fleet.members[rank].stream == 0 || has_left) continue;
      EXPECT_EQ(fleet.members[rank].failure.message(), fleet.outcome()) << "rank " << rank;
    }
  }
}

// In a ring worker 1 sends to worker 2, and worker 3 waits for worker 2.
INSTANTIATE_TEST_SUITE_P(
    Orders, StoppedRank,
    testing::Values(Order{"ExitBeforeBreak", {2}, 1, {Event::kExits, Event::kDisconnects}},
                    Order{"ExitAfterBreak", {2}, 1, {Event::kDisconnects, Event::kExits}},
                    Order{"Break", {2}, 1, {Event::kDisconnects}}, Order{"ExitOfTheReceiver", {2}, 3, {Event::kExits}},
                    Order{"ReportOfAThirdRank", {2}, 3, {Event::kReports}, 1},
                    Order{"ReportOfAThirdRankThenExit", {2}, 3, {Event::kReports, Event::kExits}, 1},
                    Order{"LeaveInError", {2}, 1, {Event::kLeavesInError, Event::kExits}},
                    Order{"BreakWithoutLauncher", {2}, 1, {Event::kDisconnects}, 0, 0, false},
                    Order{"ReportWithoutLauncher", {2}, 3, {Event::kReports}, 0, 0, false},
                    Order{"Worker0", {0}, 1, {Event::kExits}},
                    Order{"Worker0WithoutLauncher", {0}, 3, {Event::kDisconnects}, 0, 0, false},
                    Order{"TwoStopped", {1, 2}, 3, {Event::kExits}},
                    Order{"TwoStoppedAndAReport", {1, 2}, 0, {Event::kReports}, 3, 0, false},
                    Order{"WithSummers", {3}, 0, {Event::kExits}, 0, 2},
                    Order{"WithSummersAndWithoutLauncher", {3}, 0, {Event::kDisconnects}, 0, 2, false}),
    [](const auto& order) { return order.param.name; });

class Suspects : public testing::Test {
 protected:
  static Options with(absl::Duration exit_timeout) {
    Options options = coordinator::options(4, 0);
    options.deadline = kDeadline;
    options.launcher.exit_timeout = exit_timeout;
    return options;
  }
};

TEST_F(Suspects, ARankThatGoesOnIsNotTheCause) {
  for (const absl::Duration exit_timeout : {absl::ZeroDuration(), kExitTimeout}) {
    Fleet fleet(with(exit_timeout));
    fleet.start();
    fleet.members[2].is_stopped = true;
    fleet.pass(absl::Seconds(5));
    fleet.cut(1);
    fleet.pass(absl::Seconds(1));
    EXPECT_EQ(fleet.outcome(), "none");
    fleet.members[2].is_stopped = false;
    fleet.pass(exit_timeout + absl::Milliseconds(200));
    EXPECT_THAT(fleet.outcome(), AllOf(StartsWith("worker 1 at"), HasSubstr("its connection broke")));
  }
}

TEST_F(Suspects, AnExitIsTheCauseIfEveryRankHasSpoken) {
  Fleet fleet(with(kExitTimeout));
  fleet.start();
  fleet.pass(absl::Seconds(5));
  fleet.members[2].is_stopped = true;
  fleet.pass(absl::Seconds(1));
  fleet.core->on_exited(1, 0, {false, "exited with status 5"}, fleet.actions);
  EXPECT_THAT(fleet.outcome(), AllOf(StartsWith("worker 1 at"), HasSubstr("exited with status 5"))) << "at once";
}

TEST_F(Suspects, ASuspectThatIsKilledIsTheCause) {
  Fleet fleet(with(kExitTimeout));
  fleet.start();
  fleet.members[2].is_stopped = true;
  fleet.pass(absl::Seconds(5));
  fleet.core->on_exited(1, 0, {false, "exited with status 5"}, fleet.actions);
  fleet.core->on_exited(2, 0, {false, "was killed"}, fleet.actions);
  EXPECT_THAT(fleet.outcome(), AllOf(StartsWith("worker 2 at"), HasSubstr("was killed")));
}

TEST_F(Suspects, TheRankThatStoppedFirstIsNamed) {
  Fleet fleet(with(absl::ZeroDuration()));
  fleet.start();
  fleet.members[2].is_stopped = true;
  fleet.pass(absl::Seconds(1));
  fleet.members[1].is_stopped = true;
  fleet.pass(absl::Seconds(5));
  fleet.fault(0, 1);
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.pass(absl::Seconds(5));
  EXPECT_THAT(fleet.outcome(), StartsWith("worker 2 at"));
}

TEST_F(Suspects, ACutBetweenTwoRanksNamesBothAtOnce) {
  Fleet fleet(with(absl::ZeroDuration()));
  fleet.start();
  fleet.pass(absl::Seconds(20));
  fleet.fault(1, 2);
  EXPECT_THAT(fleet.outcome(), AllOf(StartsWith("worker 2 at"), HasSubstr("worker 1 reports: out of reach")));
}

TEST_F(Suspects, AStoppedRankThatMayReturnIsNamedAfterTheReturnTimeout) {
  Options options = with(absl::ZeroDuration());
  options.return_timeout = absl::Seconds(20);
  Fleet fleet(options);
  fleet.restart();  // a coordinator that another one may replace
  fleet.start();
  fleet.members[2].is_stopped = true;
  fleet.pass(absl::Seconds(5));
  fleet.ended(1, absl::UnavailableError("its pod failed"));
  EXPECT_EQ(fleet.outcome(), "none");
  fleet.pass(kDeadline + options.return_timeout - absl::Seconds(4));
  EXPECT_THAT(fleet.outcome(), AllOf(StartsWith("worker 2 at"), HasSubstr("is lost")));
}

}  // namespace
}  // namespace gleaner::coordinator
