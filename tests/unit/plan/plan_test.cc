// Tests that validate() accepts a plan only if the plan follows every rule of plan.h.
#include "common/plan/plan.h"

#include <gmock/gmock.h>

#include <functional>
#include <limits>

#include "common/plan/schedule_name.h"

namespace gleaner::plan {
namespace {

Plan good() {
  Plan plan;
  plan.epoch = 3;
  plan.workers = 2;
  plan.local_ranks = 4;
  plan.members = {{1e9, "127.0.0.1:7000"}, {1e9, "[::1]:7001"}, {2e9, "host:7002"}};
  plan.tensors = {{"w", 10}, {"none", 0}, {"b", 3, DataType::kFloat16, -1, 2}};
  plan.partitions = {{0, 0, 0, 24}, {0, 2, 24, 16}, {2, 1, 0, 6, 3}};
  plan.first_partition = {0, 2, 2, 3};
  return plan;
}

TEST(Plan, ValidPlansPass) {
  EXPECT_TRUE(validate(good()).ok()) << validate(good());
  Plan empty;
  empty.workers = 1;
  empty.members = {{1e9, ""}};
  empty.first_partition = {0};
  EXPECT_TRUE(validate(empty).ok()) << validate(empty);
}

TEST(Plan, Names) {
  const Plan plan = good();
  EXPECT_EQ(plan.member_name(0), "worker/0");
  EXPECT_EQ(plan.member_name(2), "summer/0");
  EXPECT_EQ(plan.summers(), 1u);
  EXPECT_EQ(plan.ranks(), 8u);
}

TEST(Plan, PartitionsOfATensor) {
  const Plan plan = good();
  EXPECT_EQ(plan.partitions_of(0).size(), 2u);
  EXPECT_TRUE(plan.partitions_of(1).empty());
  EXPECT_EQ(plan.partitions_of(2).front().owner, 1u);
}

TEST(Plan, WorkersOfSeveralRanksPushSumsOfHalvesInFloat32) {
  Plan plan = good();
  EXPECT_EQ(plan.encoding(plan.tensors[2]), (Encoding{DataType::kFloat32, DataType::kFloat32, DataType::kFloat16}));
  EXPECT_EQ(plan.push_bytes(plan.partitions[2]), 12u);
  EXPECT_EQ(plan.push_bytes(plan.partitions[0]), 24u);
  EXPECT_EQ(plan.most_partition_bytes(plan.tensors[2]), kMaxPartitionBytes / 2);
  plan.local_ranks = 1;
  EXPECT_EQ(plan.encoding(plan.tensors[2]), (Encoding{DataType::kFloat16, DataType::kFloat32, DataType::kFloat16}));
  EXPECT_EQ(plan.push_bytes(plan.partitions[2]), 6u);
}

TEST(Plan, CompressedTensorsTravelInTheirTypeAlone) {
  Plan plan = good();
  plan.tensors[2].memory = {DataType::kFloat32, plan.tensors[2].elements};
  EXPECT_TRUE(validate(plan).ok()) << validate(plan);
  EXPECT_EQ(plan.encoding(plan.tensors[2]).contribution, DataType::kFloat16) << "also with several local ranks";
  EXPECT_EQ(plan.tensors[2].memory_bytes(), 2 * plan.tensors[2].bytes());
  EXPECT_EQ(types_of(plan.tensors[2]), "fp32 sent as fp16");
}

TEST(Plan, OnlyFloat32IsCompressed) {
  const auto error = [](DataType memory, DataType type, uint64_t elements, bool accumulates) {
    Tensor tensor{"x", 4, type};
    tensor.memory = {memory, elements};
    tensor.accumulates = accumulates;
    return std::string(validate(std::span(&tensor, 1)).message());
  };
  EXPECT_EQ(error(DataType::kFloat32, DataType::kBFloat16, 4, false), "");
  EXPECT_THAT(error(DataType::kFloat64, DataType::kFloat16, 4, false),
              ::testing::HasSubstr("only fp32 can, as fp16, bf16 or in blocks"));
  EXPECT_THAT(error(DataType::kFloat32, DataType::kFloat32, 4, false),
              ::testing::HasSubstr("only fp32 can, as fp16, bf16 or in blocks"));
  EXPECT_THAT(error(DataType::kFloat32, DataType::kFloat16, 5, false), ::testing::HasSubstr("expected all of them"));
  EXPECT_THAT(error(DataType::kFloat32, DataType::kFloat16, 4, true), ::testing::HasSubstr("accumulated"));
}

// A block stands for 1024 values; the last one may have fewer.
TEST(Plan, CompressedTensorsMayTravelInBlocks) {
  Tensor tensor{"x", 3, kInt8Block};
  tensor.memory = {.elements = 2050, .contribution = kSignBlock};
  const Plan plan = *make_plan({{1e9, 1e9}, {1e9}}, {tensor}, {});
  EXPECT_EQ(plan.encoding(tensor), (Encoding{kSignBlock, kFloat32Block, kInt8Block}));
  EXPECT_EQ(tensor.memory_bytes(), 2050 * sizeof(float));
  EXPECT_EQ(tensor.memory_bytes(2 * size_of(kInt8Block)), 2048 * sizeof(float));
  EXPECT_EQ(types_of(tensor), "fp32 sent as sign without error feedback");
}

// Otherwise a partition of blocks that keep few values would take gigabytes of memory.
TEST(Plan, PartitionsOfBlocksHaveAtMostFourMebibytesInMemory) {
  Tensor tensor{"x", 10'000, random_k(1)};
  tensor.memory = {.elements = 10'000 * kBlockValues};
  const Plan plan = *make_plan({{1e9, 1e9}, {1e9}}, {tensor}, {});
  for (const Partition& partition : plan.partitions)
    EXPECT_LE(tensor.memory_bytes(partition.bytes), kMaxPartitionBytes);
}

TEST(Plan, PartitionsHaveAtLeastOneBlock) {
  Tensor tensor{"x", 3, kInt8Block};
  tensor.memory = {.elements = 3 * kBlockValues};
  EXPECT_EQ(make_plan({{1e9, 1e9}, {1e9}}, {tensor}, {.partition_bytes = 8})->partitions.size(), 3u);
}

TEST(Plan, BlocksThatCanNotTravelAreErrors) {
  const auto error = [](DataType type, const std::optional<Memory>& memory) {
    Tensor tensor{"x", 2, type};
    tensor.memory = memory;
    return std::string(validate(std::span(&tensor, 1)).message());
  };
  const Memory memory{.elements = 1025};
  EXPECT_EQ(error(top_k(4), memory), "");
  EXPECT_THAT(error(top_k(4), std::nullopt), ::testing::HasSubstr("only compressed tensors travel in blocks"));
  EXPECT_THAT(error(kFloat32Block, memory), ::testing::HasSubstr("can't be sent"));
  EXPECT_THAT(error(kSignBlock, memory), ::testing::HasSubstr("can't be sent"));
  EXPECT_THAT(error(top_k(4), Memory{.elements = 1025, .contribution = kSignBlock}),
              ::testing::HasSubstr("can't be sent as sign"));
  EXPECT_THAT(error(top_k(4), Memory{.elements = 1024}), ::testing::HasSubstr("expected all of them"));
  EXPECT_THAT(error(top_k(4), Memory{.elements = 1025, .momentum = 1}), ::testing::HasSubstr("expected 0 to below 1"));
  EXPECT_THAT(error(DataType::kFloat16, Memory{.elements = 2, .feeds_back = true}),
              ::testing::HasSubstr("neither error feedback nor momentum"));
}

TEST(Plan, PlacesOfSummersMayBeEmpty) {
  Plan plan = good();
  plan.members.push_back({});
  EXPECT_TRUE(validate(plan).ok()) << validate(plan);
  EXPECT_EQ(plan.summers(), 1u);
}

TEST(Plan, InRankOrderMayGather) {
  Plan plan = good();
  plan.bits = Bits::kRankOrder;
  EXPECT_EQ(validate(plan), absl::OkStatus()) << "owners sum in rank order";
  plan.schedules = {{kGatherAlgorithm}};
  plan.tensors[0].schedule = 0;
  EXPECT_EQ(validate(plan), absl::OkStatus());
}

TEST(Bits, AreThoseOfTheStrategy) {
  EXPECT_EQ(bits_of(std::nullopt), Bits::kRankOrder);
  EXPECT_EQ(bits_of(collective::Spec{kGatherAlgorithm}), Bits::kRankOrder);
  EXPECT_EQ(bits_of(collective::Spec{"ring"}), Bits::kSchedule);
  EXPECT_EQ(bits_of(collective::Spec{"blueconnect", {2, 2}}), Bits::kSchedule);
}

TEST(Bits, NamesAreReadInLettersOfAnyCase) {
  EXPECT_EQ(parse_bits("RankOrder"), Bits::kRankOrder);
  EXPECT_EQ(parse_bits("schedule"), Bits::kSchedule);
  EXPECT_EQ(parse_bits("rank order"), std::nullopt);
  for (const Bits bits : {Bits::kRankOrder, Bits::kSchedule}) EXPECT_EQ(parse_bits(name_of(bits)), bits);
}

struct Broken {
  const char* rule;
  const char* message;
  std::function<void(Plan&)> by;
};

class BrokenPlan : public testing::TestWithParam<Broken> {};

TEST_P(BrokenPlan, IsRefused) {
  Plan plan = good();
  GetParam().by(plan);
  const absl::Status status = validate(plan);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr(GetParam().message));
}

constexpr uint64_t kHuge = std::numeric_limits<uint64_t>::max();

INSTANTIATE_TEST_SUITE_P(
    Rules, BrokenPlan,
    testing::ValuesIn(std::vector<Broken>{
        {"OwnedSince", "owned since epoch 4", [](Plan& p) { p.partitions[0].since = 4; }},
        {"OwnedBeforeItWasThere", "owned since epoch 1", [](Plan& p) { p.partitions[2].since = 1; }},
        {"MemberSince", "worker/1 came in epoch 4", [](Plan& p) { p.members[1].since = 4; }},
        {"OwnerWhoIsGone", "summer/0, whose place is empty", [](Plan& p) { p.members[2] = {}; }},
        {"NoWorkerInAPlace", "worker/1 has 0 bit/s", [](Plan& p) { p.members[1] = {}; }},
        {"OwnerOnStandby", "summer/0, which is on standby", [](Plan& p) { p.members[2].on_standby = true; }},
        {"NoWorkerOnStandby", "worker/1 is on standby", [](Plan& p) { p.members[1].on_standby = true; }},
        {"OwnerOutsideGroup", "owner worker/0, which is not in the tensor's group",
         [](Plan& p) {
           p.partitions[0].owner = 0;
           p.tensors[0].group = {1};
         }},
        {"GroupBeyondWorkers", "a group of 1 workers up to 2", [](Plan& p) { p.tensors[0].group = {2}; }},
        {"GroupOfAllWorkers", "a group of 2 workers", [](Plan& p) { p.tensors[0].group = {0, 1}; }},
        {"GroupInAnotherOrder", "not in ascending order", [](Plan& p) { p.tensors[0].group = {1, 0}; }},
        {"GroupNamesWorkerTwice", "not in ascending order", [](Plan& p) { p.tensors[0].group = {1, 1}; }},
        {"GroupAccumulates", "'w' accumulates, and has a group",
         [](Plan& p) {
           p.tensors[0].group = {1};
           p.tensors[0].accumulates = true;
         }},
        {"GroupWithSchedule", "a group and a schedule",
         [](Plan& p) {
           p.schedules = {{"ring"}};
           p.tensors[0].schedule = 0;
           p.tensors[0].group = {1};
         }},
        {"UnknownSchedule", "tensor 'w' has schedule 0 of 0", [](Plan& p) { p.tensors[0].schedule = 0; }},
        {"ScheduleOfARunningSum", "a tensor that accumulates has none",
         [](Plan& p) {
           p.schedules = {{"ring"}};
           p.tensors[0].schedule = 0;
           p.tensors[0].accumulates = true;
         }},
        {"AnotherStrategyForARunningSum", "'w' changes its strategy from push_pull 5",
         [](Plan& p) {
           p.tensors[0].accumulates = true;
           p.tensors[0].schedule_from = 5;
         }},
        {"ScheduleInAPlanInRankOrder", "'w' is summed by ring, whose bits are of class Schedule",
         [](Plan& p) {
           p.bits = Bits::kRankOrder;
           p.schedules = {{"ring"}};
           p.tensors[0].schedule = 0;
         }},
        {"RankTwice", "rank 1 of 2 workers", [](Plan& p) { p.schedules = {{.algorithm = "ring", .rank_of = {1, 1}}}; }},
        {"RankMissing", "ranks for 1 workers of 2", [](Plan& p) { p.schedules = {{.algorithm = "ring", .rank_of = {1}}}; }},
        {"MoreStagesThanWorkers", "3 stages for 2 workers",
         [](Plan& p) { p.schedules = {{"blueconnect", {1, 1, 2}}}; }},
        {"TooManySchedules", "65 schedules", [](Plan& p) { p.schedules.resize(65, {"ring"}); }},
        {"NoAlgorithm", "an algorithm's name", [](Plan& p) { p.schedules = {{""}}; }},
        {"NoWorkers", "0 workers", [](Plan& p) { p.workers = 0; }},
        {"MoreWorkersThanMembers", "4 workers among 3", [](Plan& p) { p.workers = 4; }},
        {"TooManyMembers", "at most 65536",
         [](Plan& p) {
           p.members.resize(kMaxMembers + 1, {1e9, ""});
         }},
        {"NoLocalRanks", "0 local ranks", [](Plan& p) { p.local_ranks = 0; }},
        {"TooManyRanks", "local ranks", [](Plan& p) { p.local_ranks = 1u << 31; }},
        {"NoBandwidth", "worker/1", [](Plan& p) { p.members[1].bits_per_second = 0; }},
        {"NanBandwidth", "summer/0", [](Plan& p) { p.members[2].bits_per_second = std::nan(""); }},
        {"Address", "worker/0", [](Plan& p) { p.members[0].address = "nowhere"; }},
        {"TooManyEndpoints", "worker/0: 9 endpoints",
         [](Plan& p) { p.members[0].endpoints.assign(9, "tcp://10.0.0.1:1"); }},
        {"LongEndpoint", "an endpoint of 513 bytes", [](Plan& p) { p.members[0].endpoints = {std::string(513, 'x')}; }},
        {"UnprintableEndpoint", "summer/0: an endpoint", [](Plan& p) { p.members[2].endpoints = {"tcp://\n"}; }},
        {"NoName", "name", [](Plan& p) { p.tensors[1].name.clear(); }},
        {"LongName", "4097", [](Plan& p) { p.tensors[1].name.assign(kMaxTensorNameBytes + 1, 'x'); }},
        {"NameNotUtf8", "'caf\\xe9' is not UTF-8", [](Plan& p) { p.tensors[1].name = "caf\xe9"; }},
        {"NameOfTwoLines", "control character", [](Plan& p) { p.tensors[1].name = "two\nlines"; }},
        {"NameCutOff", "is not UTF-8", [](Plan& p) { p.tensors[1].name = "cut\xe6\xa8"; }},
        {"SameName", "'w' appears twice", [](Plan& p) { p.tensors[2].name = "w"; }},
        {"Type", "data type 99", [](Plan& p) { p.tensors[1].type = static_cast<DataType>(99); }},
        {"ElementsOverflow", "elements", [](Plan& p) { p.tensors[1].elements = kHuge / 4 + 2; }},
        {"StreamOverflow", "elements", [](Plan& p) { p.tensors[1].elements = kMaxStreamBytes / 4; }},
        {"IndexEmpty", "first_partition", [](Plan& p) { p.first_partition.clear(); }},
        {"IndexStart", "first_partition", [](Plan& p) { p.first_partition[0] = 1; }},
        {"IndexEnd", "first_partition", [](Plan& p) { p.first_partition[3] = 2; }},
        {"IndexFalls", "first_partition falls", [](Plan& p) { p.first_partition[1] = 3; }},
        {"IndexBeyond", "first_partition falls", [](Plan& p) { p.first_partition[1] = 1000; }},
        {"Tensor", "'w'", [](Plan& p) { p.partitions[1].tensor = 2; }},
        {"Gap", "from its byte 24", [](Plan& p) { p.partitions[1].offset = 28; }},
        {"Overlap", "from its byte 24", [](Plan& p) { p.partitions[1].offset = 20; }},
        {"LongPush", "at most 2097152 bytes",
         [](Plan& p) {
           p.tensors[2].elements = (kMaxPartitionBytes + 4) / 4;
           p.partitions[2].bytes = kMaxPartitionBytes / 2 + 2;
         }},
        {"Short", "it has 40", [](Plan& p) { p.partitions[1].bytes = 12; }},
        {"Long", "it has 40", [](Plan& p) { p.partitions[1].bytes = 20; }},
        {"Missing", "it has 6",
         [](Plan& p) {
           p.partitions.pop_back();
           p.first_partition[3] = 2;
         }},
        {"HalfElement", "whole fp32",
         [](Plan& p) {
           p.partitions[0].bytes = 22;
           p.partitions[1].offset = 22;
         }},
        {"EmptySlice", "a partition of 0", [](Plan& p) { p.partitions[0].bytes = 0; }},
        {"LargeSlice", "at most 4194304",
         [](Plan& p) {
           p.tensors[0].elements = kMaxPartitionBytes / 4 + 1 + 4;
           p.partitions[0].bytes = kMaxPartitionBytes + 4;
           p.partitions[1].offset = kMaxPartitionBytes + 4;
         }},
        {"CountsDoNotFit", "at most 4194288",
         [](Plan& p) {
           p.tensors[0].accumulates = true;
           p.tensors[0].elements = kMaxPartitionBytes / 4 + 4;
           p.partitions[0].bytes = kMaxPartitionBytes;
           p.partitions[1].offset = kMaxPartitionBytes;
         }},
        {"AccumulatesHalves", "'b' of fp16 can't be accumulated", [](Plan& p) { p.tensors[2].accumulates = true; }},
        {"StalenessOfASum", "is not accumulated", [](Plan& p) { p.tensors[0].staleness = 3; }},
        {"Owner", "owner 3 of 3", [](Plan& p) { p.partitions[2].owner = 3; }},
    }),
    [](const auto& tested) { return tested.param.rule; });

}  // namespace
}  // namespace gleaner::plan
