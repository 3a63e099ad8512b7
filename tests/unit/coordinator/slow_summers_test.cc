// Tests of slow summers through Core: measurements go in as reports, and plans and lines for the log come out.
#include "coordinator/measure/slow_summers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/partitioner.h"
#include "tests/unit/coordinator/fleet.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr uint32_t kWorkers = 3;

Options job() {
  Options result = options(kWorkers, 2);
  result.return_timeout = absl::Seconds(5);
  result.bits_per_second = 1e9;
  result.partition_bytes = 128;
  return result;
}

// Three workers and two summers, members 3 and 4. Steps take 0.1 s if no slow summer has a share.
class SlowSummersTest : public testing::Test {
 protected:
  SlowSummersTest() {
    fleet.start();
    fleet.declare_all("a");
    fleet.settle();
    EXPECT_THAT(owners(), ElementsAre(0, 1, 2, 3, 4));
  }
  std::vector<uint32_t> owners() const {
    std::vector<uint32_t> result;
    const std::vector<uint64_t> bytes = plan::owned_bytes(fleet.core->plan());
    for (uint32_t member = 0; member < bytes.size(); ++member) {
      if (bytes[member] > 0) result.push_back(member);
    }
    return result;
  }
  bool has_share(uint32_t summer) const { return plan::owned_bytes(fleet.core->plan())[kWorkers + summer] > 0; }

  // Lets seconds pass in which every worker reports once a second: each summer in `late` is late for `share` of the
  // time while it has partitions, and steps then take `longer` times as long.
  void pass(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      fleet.pass(absl::Seconds(1));
      fleet.settle();
      bool is_slowed = false;
      for (const uint32_t summer : late) is_slowed |= has_share(summer);
      for (uint32_t worker = 0; worker < kWorkers; ++worker) report(worker, is_slowed);
      fleet.settle();
    }
  }
  void report(uint32_t worker, bool is_slowed) {
    Report& total = totals[worker];
    if (total.epoch != fleet.epoch(worker)) total.late = {{kWorkers, 0}, {kWorkers + 1, 0}};
    total.epoch = fleet.epoch(worker);
    total.steps += is_slowed ? static_cast<uint64_t>(10 / longer) : 10;
    total.communication_seconds += 0.9;
    for (const uint32_t summer : late) total.late[summer].seconds += has_share(summer) ? 0.8 : 0;
    Actions actions;
    fleet.core->on_report(fleet.members[worker].stream, total, fleet.now, actions);
    warnings.insert(warnings.end(), actions.warnings.begin(), actions.warnings.end());
    notes.insert(notes.end(), actions.notes.begin(), actions.notes.end());
  }
  std::string slow(uint32_t summer) const { return fleet.core->steps().slow_summers().describe(kWorkers + summer); }

  Fleet fleet{job()};
  std::vector<uint32_t> late;  // summers
  double longer = 2;
  Report totals[kWorkers];
  std::vector<std::string> warnings, notes;
};

TEST_F(SlowSummersTest, SummersInTimeKeepTheirShares) {
  pass(60);
  EXPECT_EQ(fleet.core->plan().epoch, 2u);
  EXPECT_EQ(fleet.core->steps().slow_summers().count(), 0u);
}

TEST_F(SlowSummersTest, ASlowSummerIsNamedAndLosesItsShare) {
  late = {1};
  pass(10);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0], AllOf(HasSubstr("summer 1 at 10.0.0.4:7000 is slow: a step takes 200 ms with it and "
                                           "100 ms without it"),
                                 HasSubstr("tried again in 30s")));
  EXPECT_THAT(owners(), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(fleet.core->plan().summers(), 2u) << "it stays a member";
  EXPECT_EQ(fleet.members[4].committed->epoch, fleet.core->plan().epoch) << "and follows plans";
  EXPECT_THAT(slow(1), HasSubstr("200 ms with it and 100 ms without it"));
  EXPECT_EQ(slow(0), "");
  EXPECT_EQ(fleet.core->steps().slow_summers().count(), 1u);
}

TEST_F(SlowSummersTest, NewTensorsGoToOthers) {
  late = {1};
  pass(10);
  fleet.declare_all("b");
  fleet.settle();
  EXPECT_TRUE(fleet.has_tensor(0, "b"));
  EXPECT_THAT(owners(), ElementsAre(0, 1, 2, 3));
}

TEST_F(SlowSummersTest, AllSummersMayBeSlow) {
  late = {0, 1};
  pass(10);
  EXPECT_THAT(warnings, SizeIs(2));
  EXPECT_THAT(owners(), ElementsAre(0, 1, 2));
}

TEST_F(SlowSummersTest, OneLateWindowIsNoise) {
  for (int i = 0; i < 5; ++i) {
    late = {1};
    pass(1);
    late = {};
    pass(2);
  }
  EXPECT_THAT(notes, SizeIs(0));
  EXPECT_EQ(fleet.core->plan().epoch, 2u);
}

TEST_F(SlowSummersTest, ItGetsItsShareBackIfStepsStayAsLong) {
  late = {1};
  longer = 1;
  pass(10);
  EXPECT_THAT(warnings, SizeIs(0));
  ASSERT_THAT(notes, SizeIs(2));
  EXPECT_THAT(notes[0], HasSubstr("summer 1 at 10.0.0.4:7000 answers late"));
  EXPECT_THAT(notes[1], HasSubstr("is not slow"));
  EXPECT_TRUE(has_share(1));
  EXPECT_EQ(slow(1), "");
  const uint32_t epoch = fleet.core->plan().epoch;
  pass(20);
  EXPECT_EQ(fleet.core->plan().epoch, epoch) << "the verdict holds for 30 s";
  pass(30);
  EXPECT_GT(fleet.core->plan().epoch, epoch);
}

TEST_F(SlowSummersTest, ItIsTriedAgainWithBackoff) {
  late = {1};
  pass(10);
  absl::Duration at = fleet.now;
  for (const int backoff : {30, 60, 120, 240, 480, 600, 600}) {
    const size_t before = warnings.size();
    const absl::Duration since = fleet.now;
    while (warnings.size() == before && fleet.now - since < absl::Minutes(15)) pass(1);
    const double waited = absl::ToDoubleSeconds(fleet.now - at);
    EXPECT_THAT(warnings.back(), HasSubstr("is still slow"));
    EXPECT_GE(waited, backoff - 6);
    EXPECT_LE(waited, backoff + 10);
    at = fleet.now;
    pass(3);
    EXPECT_FALSE(has_share(1));
    EXPECT_NE(slow(1), "");
  }
}

TEST_F(SlowSummersTest, AFastSummerKeepsItsShareAndTheBackoffBeginsAnew) {
  late = {1};
  pass(45);
  ASSERT_THAT(warnings, SizeIs(2));
  late = {};
  pass(70);
  EXPECT_TRUE(has_share(1));
  EXPECT_NE(slow(1), "") << "it is tried again";
  pass(60);
  EXPECT_EQ(slow(1), "");
  late = {1};
  pass(10);
  ASSERT_THAT(warnings, SizeIs(3));
  EXPECT_THAT(warnings[2], AllOf(HasSubstr("is slow"), HasSubstr("tried again in 30s")));
}

TEST_F(SlowSummersTest, AnotherCoordinatorTriesItAgain) {
  late = {1};
  pass(10);
  fleet.restart();
  fleet.connect_all();
  fleet.settle();
  pass(5);
  EXPECT_FALSE(has_share(1));
  EXPECT_THAT(slow(1), HasSubstr("an earlier coordinator"));
  late = {};
  pass(30);
  EXPECT_TRUE(has_share(1));
}

TEST_F(SlowSummersTest, ItsSuccessorIsNotBlamed) {
  late = {1};
  pass(10);
  ASSERT_FALSE(has_share(1));
  fleet.cut(4);
  fleet.pass(absl::Seconds(2));
  fleet.settle();
  fleet.members[4].session.clear();
  fleet.members[4].prepared = fleet.members[4].committed = nullptr;
  late = {};
  fleet.connect(4);
  fleet.settle();
  pass(2);
  EXPECT_TRUE(has_share(1));
  EXPECT_EQ(slow(1), "");
}

}  // namespace
}  // namespace gleaner::coordinator
