// Tests of the changes that are allowed from one plan of a job to the next.
#include "common/plan/successor.h"

#include <gmock/gmock.h>

#include <functional>

namespace gleaner::plan {
namespace {

Plan first() {
  Plan plan;
  plan.epoch = 3;
  plan.workers = 2;
  plan.members = {{1e9, "a:1", 1}, {1e9, "b:1", 1}, {2e9, "c:1", 2}};
  plan.tensors = {{"w", 10, DataType::kFloat32, 0, 1}};
  plan.partitions = {{0, 0, 0, 24, 1}, {0, 2, 24, 16, 2}};
  plan.first_partition = {0, 2};
  return plan;
}

Plan next(const std::function<void(Plan&)>& change) {
  Plan plan = first();
  plan.epoch = 4;
  change(plan);
  return plan;
}

TEST(Successor, MayChangeStrategies) {
  const auto by_ring = [](Plan& p) {
    p.schedules = {{"ring"}};
    p.tensors[0].schedule = 0;
    p.tensors[0].schedule_from = 10;
  };
  const auto back_to_summers = [](Plan& p) {
    p.epoch = 5;
    p.schedules = {{"ring"}};
    p.tensors[0].schedule_from = 11;
  };
  EXPECT_EQ(check_successor(next(by_ring), first()), absl::OkStatus());
  EXPECT_EQ(check_successor(next(back_to_summers), next(by_ring)), absl::OkStatus());
}

TEST(Successor, KeepsSchedulesAndNumbersOfStrategies) {
  const auto by_ring = [](Plan& p) {
    p.schedules = {{"ring"}};
    p.tensors[0].schedule = 0;
    p.tensors[0].schedule_from = 10;
  };
  const auto message_of = [&](const std::function<void(Plan&)>& change) {
    const Plan later = next([&](Plan& p) {
      p.epoch = 5;
      by_ring(p);
      change(p);
    });
    return std::string(check_successor(later, next(by_ring)).message());
  };
  EXPECT_EQ(message_of([](Plan&) {}), "");
  EXPECT_THAT(message_of([](Plan& p) { p.tensors[0].schedule_from = 9; }), testing::HasSubstr("number than 10"));
  EXPECT_THAT(message_of([](Plan& p) { p.schedules[0].algorithm = "bcube"; }),
              testing::HasSubstr("it may only add some"));
  EXPECT_THAT(message_of([](Plan& p) {
                p.schedules.clear();
                p.tensors[0].schedule.reset();
                p.tensors[0].schedule_from = 11;
              }),
              testing::HasSubstr("it may only add some"));
}

TEST(Successor, KeepsTheClassOfBits) {
  const Plan later = next([](Plan& p) { p.bits = Bits::kRankOrder; });
  EXPECT_THAT(std::string(check_successor(later, first()).message()),
              testing::HasSubstr("its bits are of class RankOrder, not Schedule"));
}

TEST(Successor, MayAddMoveAndReplace) {
  EXPECT_TRUE(check_successor(next([](Plan&) {}), first()).ok());
  EXPECT_TRUE(check_successor(next([](Plan& p) {
                                p.tensors.push_back({"v", 1, DataType::kFloat32, 0, 4});
                                p.partitions.push_back({1, 0, 0, 4, 4});
                                p.first_partition.push_back(3);
                              }),
                              first())
                  .ok());
  EXPECT_TRUE(check_successor(next([](Plan& p) {
                                p.partitions[1].owner = 1;
                                p.partitions[1].since = 4;
                                p.members[2] = {};
                              }),
                              first())
                  .ok());
  EXPECT_TRUE(check_successor(next([](Plan& p) {
                                p.members[2] = {1e9, "c:1", 4};
                                p.partitions[1].since = 4;
                              }),
                              first())
                  .ok());
  EXPECT_TRUE(check_successor(next([](Plan& p) { p.members[0].bits_per_second = 5e9; }), first()).ok());
}

struct Wrong {
  const char* what;
  const char* message;
  std::function<void(Plan&)> by;
};

class WrongSuccessor : public testing::TestWithParam<Wrong> {};

TEST_P(WrongSuccessor, IsRefused) {
  const absl::Status status = check_successor(next(GetParam().by), first());
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(Rules, WrongSuccessor,
                         testing::ValuesIn(std::vector<Wrong>{
                             {"Epoch", "epoch must be higher", [](Plan& p) { p.epoch = 3; }},
                             {"Workers", "1 workers", [](Plan& p) { p.workers = 1; }},
                             {"LocalRanks", "2 ranks", [](Plan& p) { p.local_ranks = 2; }},
                             {"FewerPlaces", "2 places", [](Plan& p) { p.members.pop_back(); }},
                             {"AnotherWorker", "worker/1 is at z:1", [](Plan& p) { p.members[1].address = "z:1"; }},
                             {"StrategyFromTheBeginning", "expected a higher number than 0",
                              [](Plan& p) {
                                p.schedules = {{"ring"}};
                                p.tensors[0].schedule = 0;
                              }},
                             {"NewTensorWithAPast", "its strategy begins with push_pull 7",
                              [](Plan& p) {
                                p.tensors.push_back({"v", 1, DataType::kFloat32, 0, 4});
                                p.tensors.back().schedule_from = 7;
                                p.partitions.push_back({1, 0, 0, 4, 4});
                                p.first_partition.push_back(3);
                              }},
                             {"AnotherPriority", "it may only add some", [](Plan& p) { p.tensors[0].priority = 1; }},
                             {"AnotherCut", "it may only add some", [](Plan& p) { p.partitions[0].bytes = 20; }},
                             {"FewerTensors", "it may only add some",
                              [](Plan& p) {
                                p.tensors.clear();
                                p.partitions.clear();
                                p.first_partition = {0};
                              }},
                             {"MovedWithoutAWord", "owns partition 1", [](Plan& p) { p.partitions[1].owner = 1; }},
                             {"AnotherPast", "since epoch 2", [](Plan& p) { p.partitions[0].since = 2; }},
                             {"KeptByAnother", "summer/0 is not the same member",
                              [](Plan& p) { p.members[2].since = 4; }},
                         }),
                         [](const auto& rule) { return std::string(rule.param.what); });

}  // namespace
}  // namespace gleaner::plan
