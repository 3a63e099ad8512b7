// Tests of cutting and assigning partitions: every byte once, every prefix in proportion, the whole at the bound.
#include "common/plan/partitioner.h"

#include "common/plan/collectives.h"
#include "common/plan/successor.h"

#include <gmock/gmock.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/paths.h"
#include "tests/unit/plan/fleets.h"

namespace gleaner::plan {
namespace {

std::vector<Tensor> model(const std::string& name) {
  std::ifstream file(source_dir() + "/examples/models/" + name + ".json");
  std::vector<Tensor> tensors;
  for (const auto& entry : nlohmann::json::parse(file)) {
    tensors.push_back({entry.at("name"), entry.at("bytes").get<uint64_t>() / 4});
  }
  return tensors;
}

std::vector<Tensor> random_tensors(std::mt19937_64& random, size_t count, const std::string& prefix) {
  std::vector<Tensor> tensors(count);
  for (size_t i = 0; i < count; ++i) {
    tensors[i].name = prefix + std::to_string(i);
    tensors[i].type = static_cast<DataType>(std::uniform_int_distribution(1, 5)(random));
    tensors[i].elements = static_cast<uint64_t>(std::exp2(std::uniform_real_distribution(-1., 18.)(random)));
  }
  return tensors;
}

uint64_t largest_partition(const Plan& plan) {
  uint64_t largest = 0;
  for (const Partition& partition : plan.partitions) largest = std::max<uint64_t>(largest, partition.bytes);
  return largest;
}

uint64_t stream_bytes(const Plan& plan) {
  uint64_t bytes = 0;
  for (const Tensor& tensor : plan.tensors) bytes += tensor.bytes();
  return bytes;
}

// Returns the requested partition size, or the default if none was requested.
uint64_t partition_limit(const Plan& plan, uint64_t asked) {
  return asked > 0 ? asked : default_partition_bytes(fleet_of(plan), stream_bytes(plan));
}

// Returns the largest distance of a member from its share after any partition, in bytes.
double worst_prefix(const Plan& plan) {
  const auto share = shares(fleet_of(plan));
  std::vector<double> owned(share.size());
  double stream = 0, worst = 0;
  for (const Partition& partition : plan.partitions) {
    stream += partition.bytes;
    owned[partition.owner] += partition.bytes;
    for (size_t member = 0; member < share.size(); ++member) {
      worst = std::max(worst, std::abs(owned[member] - share[member] * stream));
    }
  }
  return worst;
}

double over_bound(const Plan& plan) {
  const Fleet fleet = fleet_of(plan);
  return step_seconds(fleet, owned_bytes(plan)) / bound_seconds(fleet, static_cast<double>(stream_bytes(plan)));
}

uint64_t largest_of(const Plan& plan) {
  uint64_t largest = 0;
  for (const Partition& partition : plan.partitions) largest = std::max<uint64_t>(largest, partition.bytes);
  return largest;
}

TEST(Partitioner, RandomPlansAreValidAndEveryPrefixIsBalanced) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Fleet fleet = random_fleet(random, 20);
    const uint64_t partition_bytes =
        seed % 3 == 0 ? 0 : static_cast<uint64_t>(std::exp2(std::uniform_real_distribution(8., 22.)(random)));
    const auto plan = make_plan(fleet, random_tensors(random, 60, "t"), {partition_bytes});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_TRUE(validate(*plan).ok()) << validate(*plan);
    if (partition_bytes > 0) {
      ASSERT_LE(largest_partition(*plan), partition_bytes);
    }
    ASSERT_LE(worst_prefix(*plan), static_cast<double>(partition_limit(*plan, partition_bytes)) * (1 + 1e-9));
  }
}

TEST(Partitioner, MembersOfShareZeroOwnNothing) {
  const auto plan = make_plan(even_fleet(8, 8, 25 * kGbit), model("resnet50"), {});
  ASSERT_TRUE(plan.ok());
  for (const Partition& partition : plan->partitions) EXPECT_GE(partition.owner, 8u);
}

struct Rig {
  const char* model;
  uint32_t workers;
  uint32_t summers;
  double bits_per_second;
};
class RealModel : public testing::TestWithParam<Rig> {};

TEST_P(RealModel, TheTotalIsWithinHalfAPercentOfTheBound) {
  const auto [name, workers, summers, bandwidth] = GetParam();
  const auto plan = make_plan(even_fleet(workers, summers, bandwidth), model(name), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_LE(over_bound(*plan), 1.005);
  EXPECT_LE(worst_prefix(*plan), static_cast<double>(largest_partition(*plan)));
}

std::vector<Rig> rigs() {
  std::vector<Rig> rigs;
  for (const char* name : {"vgg16", "resnet50", "gpt2_small", "bert_large"}) {
    for (double bandwidth : {0.2 * kGbit, 10 * kGbit, 25 * kGbit, 100 * kGbit}) {
      rigs.push_back({name, 8, 4, bandwidth});
      rigs.push_back({name, 32, 16, bandwidth});
      rigs.push_back({name, 8, 0, bandwidth});
    }
  }
  return rigs;
}
INSTANTIATE_TEST_SUITE_P(Rigs, RealModel, testing::ValuesIn(rigs()), [](const auto& tested) {
  const Rig& rig = tested.param;
  return std::string(rig.model) + "_" + std::to_string(rig.workers) + "_" + std::to_string(rig.summers) + "_" +
         std::to_string(static_cast<int>(rig.bits_per_second / 1e6)) + "Mbit";
});

TEST(Partitioner, TheLargestPartitionsComeCloseToTheBound) {
  for (const char* name : {"vgg16", "resnet50", "gpt2_small", "bert_large"}) {
    for (uint32_t n : {8, 32}) {
      const auto plan = make_plan(even_fleet(n, n / 2, 25 * kGbit), model(name), {kMaxPartitionBytes});
      ASSERT_TRUE(plan.ok()) << plan.status();
      EXPECT_LE(over_bound(*plan), 1.005) << name << " on " << n;
    }
  }
}

TEST(Partitioner, UnequalMachinesComeCloseToTheBound) {
  const auto tensors = model("gpt2_small");
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Fleet fleet = random_fleet(random);
    if (fleet.n() == 1) continue;
    const auto plan = make_plan(fleet, tensors, {});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_LE(over_bound(*plan), 1.005);
  }
}

TEST(Partitioner, TensorsAreCutEvenly) {
  const auto plan = make_plan(even_fleet(4, 0, kGbit), {{"w", 1000 * 1024 + 1}, {"last", 100 << 20}}, {1 << 20});
  ASSERT_TRUE(plan.ok());
  const auto slices = plan->partitions_of(0);
  ASSERT_EQ(slices.size(), 4u);  // 3.9 MiB
  for (const Partition& slice : slices) EXPECT_NEAR(slice.bytes, 1024001, 4);
}

TEST(Partitioner, AnswersWithCountsFitTheLargestPartition) {
  Tensor tensor{"w", 3 << 20};
  tensor.accumulates = true;
  const auto plan = make_plan(even_fleet(4, 0, kGbit), {tensor}, {kMaxPartitionBytes});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(validate(*plan).ok()) << validate(*plan);
  for (const Partition& slice : plan->partitions) EXPECT_LE(plan->answer_bytes(slice), kMaxPartitionBytes);
}

TEST(Partitioner, EmptyAndTinyTensors) {
  const auto plan =
      make_plan(even_fleet(3, 2, kGbit), {{"none", 0}, {"one", 1}, {"half", 1, DataType::kFloat16}, {"void", 0}}, {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(validate(*plan).ok());
  EXPECT_THAT(plan->first_partition, testing::ElementsAre(0, 0, 1, 2, 2));
  EXPECT_EQ(plan->partitions[0].bytes, 4u);
  EXPECT_EQ(plan->partitions[1].bytes, 2u);
  const auto none = make_plan(even_fleet(3, 2, kGbit), {}, {});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(validate(*none).ok());
}

TEST(Partitioner, ASmallTensorAloneIsSpread) {
  const auto plan = make_plan(even_fleet(8, 0, 0.2 * kGbit), {{"w", 16384}}, {});
  ASSERT_TRUE(plan.ok());
  for (uint64_t owned : owned_bytes(*plan)) EXPECT_NEAR(static_cast<double>(owned), 8192, 4096);
}

TEST(Partitioner, ExtensionsKeepPartitionsAndBalanceTheWhole) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const PartitionOptions options{seed % 2 == 0 ? uint64_t{1} << 14 : 0};
    // With halves, each extension would change the push ratio, and with it the shares.
    const auto draw = [&](size_t count, const std::string& prefix) {
      std::vector<Tensor> tensors = random_tensors(random, count, prefix);
      for (Tensor& tensor : tensors) tensor.type = size_of(tensor.type) == 2 ? DataType::kInt32 : tensor.type;
      return tensors;
    };
    auto plan = make_plan(random_fleet(random, 12), draw(5, "a"), options);
    ASSERT_TRUE(plan.ok());
    plan->epoch = 7;
    plan->local_ranks = 2;
    plan->members[0].address = "127.0.0.1:7000";
    for (int round = 0; round < 8; ++round) {
      auto extended = extend_plan(*plan, draw(4, std::to_string(round) + "."), options, 8);
      ASSERT_TRUE(extended.ok()) << extended.status();
      ASSERT_TRUE(validate(*extended).ok()) << validate(*extended);
      ASSERT_EQ(extended->members, plan->members);
      ASSERT_EQ(extended->epoch, 8u);
      ASSERT_EQ(extended->local_ranks, 2u);
      ASSERT_TRUE(std::equal(plan->partitions.begin(), plan->partitions.end(), extended->partitions.begin()));
      ASSERT_TRUE(std::equal(plan->tensors.begin(), plan->tensors.end(), extended->tensors.begin()));
      const auto limit = static_cast<double>(partition_limit(*extended, options.partition_bytes));
      ASSERT_LE(worst_prefix(*extended), limit * (1 + 1e-9));
      plan = std::move(extended);
    }
  }
}

// Workers of several ranks push fp32 sums of fp16 and bf16, so their partitions have half as many bytes.
TEST(Partitioner, PartitionsOfHalvesFitTheirPushes) {
  Plan plan = *make_plan(even_fleet(2, 0, 10 * kGbit), {}, {});
  plan.local_ranks = 2;
  const std::vector<Tensor> tensors = {{"half", 9'000'001, DataType::kFloat16}, {"single", 3'000'001}};
  const Plan extended = *extend_plan(plan, tensors, {kMaxPartitionBytes}, 1);
  ASSERT_TRUE(validate(extended).ok()) << validate(extended);
  uint32_t largest[2] = {};
  for (const Partition& each : extended.partitions) largest[each.tensor] = std::max(largest[each.tensor], each.bytes);
  EXPECT_GT(largest[0], kMaxPartitionBytes / 4);
  EXPECT_LE(largest[0], kMaxPartitionBytes / 2);
  EXPECT_GT(largest[1], kMaxPartitionBytes / 2);
  EXPECT_DOUBLE_EQ(fleet_of(extended).push_ratio, (2 * 18'000'002.0 + 12'000'004) / (18'000'002 + 12'000'004));
  EXPECT_GE(window_bytes(extended, 0), 4 * uint64_t{2 * largest[0]});
}

// The shares follow the push ratio, so a step of halves alone takes the bound.
TEST(Partitioner, HalvesReachTheirBound) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    Plan empty = *make_plan(random_fleet(random, 12), {}, {});
    empty.local_ranks = 4;
    const Plan plan = *extend_plan(empty, {{"half", uint64_t{64} << 20, DataType::kBFloat16}}, {}, 1);
    EXPECT_EQ(fleet_of(plan).push_ratio, 2);
    if (plan.workers > 1) {
      EXPECT_LE(over_bound(plan), 1.01);
    }
  }
}

TEST(Reassign, AssignsAllOwnersAgainForOtherMembers) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    auto plan = make_plan(random_fleet(random, 12), random_tensors(random, 20, "a"), {seed % 2 == 0 ? 4096u : 0u});
    ASSERT_TRUE(plan.ok());
    plan->epoch = 3;
    std::vector<Member> members = plan->members;
    for (size_t i = 0; i < members.size(); ++i) {
      members[i].bits_per_second *= 1 + static_cast<double>(random() % 8);
      const bool goes = i >= plan->workers && random() % 3 == 0;
      if (goes) members[i] = {};
    }
    members.push_back({5e9, "10.0.0.1:7", 4});
    const Plan changed = reassign(*plan, members, 4, Reassign::kAll);
    ASSERT_TRUE(validate(changed).ok()) << validate(changed);
    ASSERT_TRUE(check_successor(changed, *plan).ok()) << check_successor(changed, *plan);
    ASSERT_EQ(changed.members, members);
    ASSERT_LE(worst_prefix(changed), static_cast<double>(largest_of(changed)) * (1 + 1e-9));
  }
}

TEST(Reassign, MovesOnlyPartitionsOfLostMembers) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    auto plan = make_plan(random_fleet(random, 12), random_tensors(random, 20, "a"), {});
    ASSERT_TRUE(plan.ok());
    plan->epoch = 3;
    std::vector<Member> members = plan->members;
    for (size_t i = plan->workers; i < members.size(); i += 2) members[i] = {};
    const Plan changed = reassign(*plan, members, 4, Reassign::kLost);
    ASSERT_TRUE(validate(changed).ok()) << validate(changed);
    ASSERT_TRUE(check_successor(changed, *plan).ok()) << check_successor(changed, *plan);
    for (size_t i = 0; i < plan->partitions.size(); ++i) {
      const uint32_t owner = plan->partitions[i].owner;
      if (members[owner].is_here()) {
        ASSERT_EQ(changed.partitions[i], plan->partitions[i]);
      } else {
        ASSERT_EQ(changed.partitions[i].since, 4u);
      }
    }
  }
}

TEST(Reassign, AMemberInAReusedPlaceOwnsPartitionsSinceItsEpoch) {
  auto plan = make_plan({{1e9, 1e9, 1e9}, {1e9}}, {{"w", 1 << 20}}, {1 << 16});
  ASSERT_TRUE(plan.ok());
  plan->epoch = 1;
  std::vector<Member> members = plan->members;
  members[3].since = 2;
  const Plan changed = reassign(*plan, members, 2, Reassign::kAll);
  for (const Partition& partition : changed.partitions) EXPECT_EQ(partition.since, partition.owner == 3 ? 2u : 0u);
}

TEST(Reassign, ASummerOnStandbyOwnsNothing) {
  const Fleet fleet = {{1e9, 1e9}, {1e9, 1e9}};
  auto plan = make_plan(fleet, {{"w", 1 << 20}}, {1 << 16});
  ASSERT_TRUE(plan.ok());
  std::vector<Member> members = plan->members;
  members[2].on_standby = true;
  const Plan changed = reassign(*plan, members, 2, Reassign::kAll);
  EXPECT_EQ(owned_bytes(changed)[2], 0u);
  EXPECT_GT(owned_bytes(changed)[3], 0u);
  EXPECT_TRUE(validate(changed).ok()) << validate(changed);
  const auto extended = extend_plan(changed, {{"later", 1 << 20}}, {1 << 16}, 3);
  ASSERT_TRUE(extended.ok());
  EXPECT_EQ(owned_bytes(*extended)[2], 0u);
  EXPECT_EQ(bound_seconds(fleet_of(*extended), 1e9), bound_seconds({{1e9, 1e9}, {1e9}}, 1e9));
  members = extended->members;
  members[3] = {};
  const Plan recovered = reassign(*extended, members, 4, Reassign::kLost);
  EXPECT_EQ(owned_bytes(recovered)[2], 0u);
}

// Owners sum only the tensors without a schedule, so these are split by the shares, whatever lies between them.
TEST(Reassign, TensorsWithAScheduleAreAStreamOfTheirOwn) {
  const Fleet fleet = {{1e9, 1e9, 1e9}, {1e9}};
  constexpr uint64_t kPartition = 1 << 12;
  auto plan = make_plan(fleet, {{"a", 3 << 12}, {"b", 5 << 14}, {"c", 7 << 13}, {"d", 9 << 14}}, {kPartition});
  ASSERT_TRUE(plan.ok());
  plan->schedules = {{"ring"}};
  plan->tensors[1].schedule = 0;
  plan->tensors[2].schedule = 0;
  const auto expect_balance = [&](const Plan& changed, size_t tensors) {
    EXPECT_EQ(validate(changed), absl::OkStatus());
    const std::vector<double> share = shares(fleet);
    std::vector<double> owned(share.size());
    double total = 0;
    for (const Partition& partition : changed.partitions) {
      if (changed.tensors[partition.tensor].schedule.has_value() || partition.tensor >= tensors) continue;
      owned[partition.owner] += partition.bytes;
      total += partition.bytes;
    }
    for (size_t i = 0; i < share.size(); ++i) EXPECT_NEAR(owned[i], share[i] * total, kPartition) << i;
  };
  const Plan changed = reassign(*plan, plan->members, 2, Reassign::kAll);
  expect_balance(changed, 4);
  std::vector<Tensor> more = {{"e", 11 << 13}, {"f", 13 << 13}};
  more[0].schedule = 0;
  const auto extended = extend_plan(changed, more, {kPartition}, 3);
  ASSERT_TRUE(extended.ok());
  expect_balance(*extended, 6);
}

// Returns one tensor of `bytes` bytes for each of the m = n / replicas shards; worker i has a replica of shard i mod m.
std::vector<Tensor> replicated_shards(const Fleet& fleet, uint32_t replicas, uint64_t bytes) {
  const uint32_t shards = fleet.n() / replicas;
  std::vector<Tensor> tensors(shards);
  for (uint32_t worker = 0; worker < fleet.n(); ++worker) tensors[worker % shards].group.push_back(worker);
  for (uint32_t shard = 0; shard < shards; ++shard) {
    tensors[shard].name = "shard" + std::to_string(shard);
    tensors[shard].elements = bytes / 4;
  }
  return tensors;
}

// Returns how long the busiest link needs for the plan's traffic.
double busiest_seconds(const Plan& plan) {
  std::vector<double> bytes(plan.members.size());
  for (const Partition& partition : plan.partitions) {
    const Tensor& tensor = plan.tensors[partition.tensor];
    plan.for_each_contributor(tensor, [&](uint32_t worker) {
      if (worker == partition.owner) return;
      bytes[worker] += partition.bytes;
      bytes[partition.owner] += partition.bytes;
    });
  }
  double seconds = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    seconds = std::max(seconds, bytes[i] * 8 / plan.members[i].bits_per_second);
  }
  return seconds;
}

TEST(Groups, ReplicasOfShardsMeetBoundOfHybridSharding) {
  for (const uint32_t replicas : {2u, 4u}) {
    for (const uint32_t summers : {0u, 1u, 3u, 8u}) {
      const Fleet fleet = even_fleet(8, summers, kGbit);
      const uint64_t shard = 64 << 20;
      const auto plan = make_plan(fleet, replicated_shards(fleet, replicas, shard), {});
      ASSERT_TRUE(plan.ok() && validate(*plan).ok()) << plan.status() << validate(*plan);
      const auto bound = hybrid_sharding_bound(fleet, static_cast<double>(shard) * (8 / replicas), replicas);
      ASSERT_TRUE(bound.ok());
      EXPECT_NEAR(busiest_seconds(*plan) / bound->seconds, 1, 0.005)
          << replicas << " replicas, " << summers << " summers";
    }
  }
}

TEST(Groups, KeepTheirOwnersAmongMembers) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Fleet fleet = random_fleet(random, 12);
    std::vector<Tensor> tensors = random_tensors(random, 20, "a");
    for (Tensor& tensor : tensors) {
      for (uint32_t worker = 1; worker < fleet.n(); ++worker) {
        if (random() % 2 == 0) tensor.group.push_back(worker);
      }
    }
    auto plan = make_plan(fleet, tensors, {4096});
    ASSERT_TRUE(plan.ok()) << plan.status();
    ASSERT_TRUE(validate(*plan).ok()) << validate(*plan);
    plan->epoch = 3;
    std::vector<Member> members = plan->members;
    for (size_t i = plan->workers; i < members.size(); i += 2) members[i] = {};
    for (const Reassign which : {Reassign::kAll, Reassign::kLost}) {
      const Plan changed = reassign(*plan, members, 4, which);
      ASSERT_TRUE(validate(changed).ok()) << validate(changed);
      ASSERT_TRUE(check_successor(changed, *plan).ok()) << check_successor(changed, *plan);
    }
  }
}

TEST(Partitioner, AHundredThousandTensors) {
  std::mt19937_64 random(1);
  const auto plan = make_plan(even_fleet(64, 32, 25 * kGbit), random_tensors(random, 100'000, "layer."), {});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(validate(*plan).ok());
  EXPECT_LE(over_bound(*plan), 1.005);
}

TEST(Partitioner, DefaultSizes) {
  // The lab: 200 Mbit/s, 64 MiB, 8 workers. 32 KiB was the fastest in measurements.
  EXPECT_EQ(default_partition_bytes(even_fleet(8, 4, 0.2 * kGbit), 64 << 20), 32u << 10);
  // A fast link and a large model: the link's time decides.
  EXPECT_EQ(default_partition_bytes(even_fleet(8, 4, 10 * kGbit), uint64_t{100} << 30), 1u << 20);
  EXPECT_EQ(default_partition_bytes(even_fleet(8, 4, 400 * kGbit), uint64_t{100} << 30), kMaxPartitionBytes);
  // A small model: every owner gets a few partitions, as long as the wire does not wait for the CPU.
  EXPECT_EQ(default_partition_bytes(even_fleet(8, 4, 0.2 * kGbit), 1 << 20), 4u << 10);
  EXPECT_EQ(default_partition_bytes(even_fleet(8, 4, 10 * kGbit), 1 << 20), 64u << 10);
  EXPECT_EQ(default_partition_bytes(even_fleet(8, 4, 1 * kGbit), 1 << 20), 8u << 10);
  EXPECT_EQ(default_partition_bytes(even_fleet(8, 4, 100 * kGbit), 1 << 20), 64u << 10);
  EXPECT_EQ(default_partition_bytes(even_fleet(8, 4, 1), 0), 4u << 10);
  // The slowest worker decides, not a slow summer.
  Fleet uneven = even_fleet(8, 4, 10 * kGbit);
  uneven.summer_bits_per_second[0] = 0.1 * kGbit;
  EXPECT_EQ(default_partition_bytes(uneven, uint64_t{100} << 30), 1u << 20);
  uneven.worker_bits_per_second[5] = 0.2 * kGbit;
  EXPECT_EQ(default_partition_bytes(uneven, uint64_t{100} << 30), 32u << 10);
}

TEST(Partitioner, DefaultSizesOfManyWorkers) {
  // Above 16 workers, partitions get smaller, so that n of them take as long as 16 do with 16 workers.
  EXPECT_EQ(default_partition_bytes(even_fleet(16, 16, 8 * kGbit), uint64_t{100} << 30), 1u << 20);
  EXPECT_EQ(default_partition_bytes(even_fleet(64, 16, 8 * kGbit), uint64_t{100} << 30), 256u << 10);
}

TEST(Partitioner, TheWindowCoversTheRoundTripThroughAnOwner) {
  const auto plan = make_plan(even_fleet(8, 4, 0.2 * kGbit), {{"w", 16 << 20}}, {});  // 64 MiB of fp32
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(window_bytes(*plan, 0), 16u * (32 << 10));
  EXPECT_EQ(window_bytes(*plan, 0, 100'000), 4u * (32 << 10)) << "whole partitions";
  const auto small = make_plan(even_fleet(8, 4, 0.2 * kGbit), {{"w", 1024}}, {});
  EXPECT_EQ(window_bytes(*small, 0), 490u * 512) << "10 ms of the link, in slices of 512 bytes";
  EXPECT_EQ(window_bytes(*plan, 0, 0, 20e-3), (16u + 16) * (32 << 10)) << "500,000 bytes more: 20 ms of the link";
  EXPECT_EQ(window_bytes(*plan, 0, 100'000, 20e-3), 4u * (32 << 10)) << "the requested window";
  const auto slow = make_plan(even_fleet(8, 4, 1e6), {{"w", 1024}}, {});
  EXPECT_EQ(window_bytes(*slow, 0), 64u << 10);
}

TEST(Partitioner, PartitionsOfASchedulesTensorsAreLargerByItsSlices) {
  Plan plan = *make_plan(even_fleet(8, 0, 0.2 * kGbit), {}, {});
  plan.schedules = {{"ring"}, {"double-tree"}, {"bcube"}};
  std::vector<Tensor> tensors(4, {.elements = 4 << 20});  // 64 MiB of fp32 together
  for (uint32_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = std::string(1, static_cast<char>('a' + i));
    if (i > 0) tensors[i].schedule = i - 1;
  }
  const auto largest = [&](const Plan& made, uint32_t tensor) {
    uint32_t bytes = 0;
    for (const Partition& partition : made.partitions_of(tensor)) bytes = std::max(bytes, partition.bytes);
    return bytes;
  };
  const auto made = extend_plan(plan, tensors, {.schedules = {{8}, {2.9}}}, 1);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(validate(*made).ok());
  EXPECT_EQ(largest(*made, 0), 32u << 10);
  EXPECT_EQ(largest(*made, 1), 128u << 10) << "eight times 16 KiB, the size for this tensor alone";
  EXPECT_EQ(largest(*made, 2), 32u << 10) << "a power of two";
  EXPECT_EQ(largest(*made, 3), 16u << 10) << "no entry";
  EXPECT_EQ(window_bytes(*made, 0), 2u * 8 * (32 << 10)) << "of the partitions that owners sum";
  EXPECT_EQ(schedule_window_bytes(*made, 0), 4u * (128 << 10)) << "of those that schedules sum";
  const auto asked = extend_plan(plan, tensors, {.partition_bytes = 16 << 10, .schedules = {{8}, {3}}}, 1);
  for (uint32_t i = 0; i < tensors.size(); ++i) EXPECT_EQ(largest(*asked, i), 16u << 10);
}

// Returns the bytes of the partitions of the last tensor, which a schedule sums, in a plan with these summers and this
// tensor before it.
std::vector<uint32_t> cut_by_schedule(uint32_t summers, uint64_t elements_before, DataType type, uint64_t size,
                                      const ScheduleCut& cut) {
  Plan plan = *make_plan(even_fleet(5, summers, 0.2 * kGbit), {}, {});
  plan.schedules = {{"ring"}};
  std::vector<Tensor> tensors = {{"a", elements_before}, {.name = "b", .elements = 150'000, .type = type}};
  tensors[1].schedule = 0;
  const Plan made = *extend_plan(plan, tensors, {.partition_bytes = size, .schedules = {cut}}, 1);
  EXPECT_TRUE(validate(made).ok()) << validate(made);
  std::vector<uint32_t> bytes;
  for (const Partition& partition : made.partitions_of(1)) bytes.push_back(partition.bytes);
  return bytes;
}

TEST(Partitioner, CutsOfSchedulesFollowFromTensorAndSizeAlone) {
  for (const uint32_t summers : {0, 1, 3}) {
    for (const uint64_t before : {0, 1, 77'777}) {
      EXPECT_THAT(cut_by_schedule(summers, before, DataType::kBFloat16, 64 << 10, {8}),
                  testing::ElementsAre(30'000, 30'000, 30'000, 30'000, 30'000, 30'000, 30'000, 30'000, 30'000, 30'000));
      EXPECT_EQ(cut_by_schedule(summers, before, DataType::kFloat32, 0, {8}),
                cut_by_schedule(0, 0, DataType::kFloat32, 0, {8}));
    }
  }
}

TEST(Partitioner, MessagesOfSeveralContributionsFitIntoFrames) {
  const ScheduleCut gather{.blocks = 16, .has_partial_sums = false};
  EXPECT_THAT(cut_by_schedule(0, 0, DataType::kFloat32, 4 << 20, gather),
              testing::ElementsAre(200'000, 200'000, 200'000));
  EXPECT_THAT(cut_by_schedule(0, 0, DataType::kFloat16, 4 << 20, gather), testing::ElementsAre(150'000, 150'000));
}

TEST(Partitioner, PartitionsOfSchedulesAreAtMostFourMebibytes) {
  EXPECT_EQ(sliced_partition_bytes(1 << 20, 64), kMaxPartitionBytes);
  EXPECT_EQ(sliced_partition_bytes(4096, 1), 4096u);
}

TEST(Partitioner, PartitionsOfSchedulesKeepLinksBusy) {
  const auto plan = make_plan(even_fleet(2, 0, 0.2 * kGbit), {{"w", 1024}}, {});
  EXPECT_EQ(schedule_window_bytes(*plan, 0), 250'000u) << "10 ms of the link";
  EXPECT_EQ(schedule_window_bytes(*plan, 0, 0, 20e-3), 750'000u) << "and 20 ms of round trip";
  EXPECT_EQ(schedule_window_bytes(*plan, 0, 1000, 20e-3), 1000u) << "the requested window";
  const auto slow = make_plan(even_fleet(2, 0, 1e6), {{"w", 1024}}, {});
  EXPECT_EQ(schedule_window_bytes(*slow, 0), 64u << 10);
}

TEST(Partitioner, BadInput) {
  const Fleet fleet = even_fleet(2, 1, kGbit);
  const auto message = [](const absl::StatusOr<Plan>& plan) { return std::string(plan.status().message()); };
  EXPECT_THAT(message(make_plan({}, {}, {})), testing::HasSubstr("worker"));
  EXPECT_THAT(message(make_plan(fleet, {{"w", 1}}, {kMaxPartitionBytes + 1})), testing::HasSubstr("4194305"));
  EXPECT_THAT(message(make_plan(fleet, {{"w", 1}}, {7})), testing::HasSubstr("7 bytes"));
  EXPECT_THAT(message(make_plan(fleet, {{"w", 1}, {"w", 1}}, {})), testing::HasSubstr("'w' appears twice"));
  EXPECT_THAT(message(make_plan(fleet, {{"w", uint64_t{1} << 40}}, {8})), testing::HasSubstr("larger partitions"));
  EXPECT_THAT(message(make_plan(fleet, {{"w", uint64_t{1} << 62}}, {})), testing::HasSubstr("'w'"));
  const auto plan = make_plan(fleet, {{"w", 1}}, {});
  ASSERT_TRUE(plan.ok());
  EXPECT_THAT(message(extend_plan(*plan, {{"w", 1}}, {}, 1)), testing::HasSubstr("'w' appears twice"));
}

}  // namespace
}  // namespace gleaner::plan
