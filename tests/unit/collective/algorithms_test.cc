#include "common/collective/algorithms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/collective/bcube.h"
#include "common/collective/blueconnect.h"
#include "common/collective/checker.h"
#include "common/collective/cost.h"
#include "common/collective/double_tree.h"
#include "common/collective/groups.h"
#include "common/collective/halving_doubling.h"
#include "common/collective/racks.h"
#include "common/collective/two_level.h"
#include "common/topology/builders.h"
#include "tests/unit/collective/blueconnect_seconds.h"
#include "tests/unit/collective/counts.h"

namespace gleaner::collective {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Schedule made(const Spec& spec, uint32_t ranks) {
  absl::StatusOr<Schedule> schedule = make_schedule(spec, ranks);
  EXPECT_TRUE(schedule.ok()) << name_of(spec) << " " << ranks << schedule.status();
  return schedule.ok() ? *std::move(schedule) : Schedule();
}

// Makes and checks a schedule.
Schedule checked(const Spec& spec, uint32_t ranks) {
  Schedule schedule = made(spec, ranks);
  EXPECT_EQ(check(schedule), absl::OkStatus()) << name_of(spec) << " " << ranks;
  EXPECT_EQ(schedule.algorithm, spec.algorithm);
  EXPECT_EQ(schedule.ranks, ranks);
  return schedule;
}

std::string error_of(const Spec& spec, uint32_t ranks) {
  const absl::StatusOr<Schedule> schedule = make_schedule(spec, ranks);
  EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(schedule.status().message());
}

// Returns the chunks that a rank sends, and those that it receives.
std::pair<uint64_t, uint64_t> chunks_of(const Schedule& schedule, uint32_t rank) {
  std::pair<uint64_t, uint64_t> chunks;
  for (const Op& op : schedule.programs[rank]) {
    (op.kind == OpKind::kSend ? chunks.first : chunks.second) += op.slice.count;
  }
  return chunks;
}

// Returns all pairs of numbers whose product is `ranks`.
std::vector<std::vector<uint32_t>> pairs_of(uint32_t ranks) {
  std::vector<std::vector<uint32_t>> pairs;
  for (uint32_t first = 1; first <= ranks; ++first) {
    if (ranks % first == 0) pairs.push_back({first, ranks / first});
  }
  return pairs;
}

double star_seconds(const Schedule& schedule, double bits_per_second, double latency, uint64_t bytes) {
  const auto star = make_network(*topology::star(schedule.ranks, {bits_per_second, 0, latency / 2}));
  std::vector<uint32_t> host_of(schedule.ranks);
  std::iota(host_of.begin(), host_of.end(), 0);
  return cost(schedule, star, host_of, bytes)->seconds;
}

TEST(Algorithms, AllServeEveryCountByDefault) {
  for (const absl::string_view algorithm : algorithms()) {
    for (const uint32_t ranks : tested_counts()) checked({.algorithm = std::string(algorithm)}, ranks);
  }
}

TEST(Algorithms, Names) {
  EXPECT_THAT(algorithms(), ElementsAre("ring", "halving-doubling", "double-tree", "bcube", "blueconnect", "gather",
                                        "racks", "two-level"));
  EXPECT_THAT(
      error_of({.algorithm = "rings"}, 4),
      HasSubstr("'rings' is unknown; give one of ring, halving-doubling, double-tree, bcube, blueconnect, gather, "
                "racks, two-level"));
}

TEST(Algorithms, GatherTakesFewestSteps) {
  for (const uint32_t ranks : tested_counts()) {
    const Schedule schedule = checked({.algorithm = "gather"}, ranks);
    EXPECT_EQ(schedule.steps, std::bit_width(ranks - 1)) << ranks;
    EXPECT_EQ(chunks_of(schedule, ranks / 2), std::pair(uint64_t{ranks - 1}, uint64_t{ranks - 1}));
  }
  // Three latencies of 10 us, and seven contributions of 8 us.
  EXPECT_DOUBLE_EQ(star_seconds(checked({.algorithm = "gather"}, 8), 1e9, 10e-6, 1000), 3 * 10e-6 + 7 * 8e-6);
}

TEST(Algorithms, RanksOutOfRange) {
  EXPECT_THAT(error_of({.algorithm = "ring"}, 0), HasSubstr("the number of ranks is 0; give 1 to 65536"));
  EXPECT_THAT(error_of({.algorithm = "racks"}, 65537), HasSubstr("is 65537; give 1 to 65536"));
}

TEST(Algorithms, RefusesHugeSchedules) {
  EXPECT_THAT(error_of({.algorithm = "ring"}, 65536), HasSubstr("17179869184 operations; at most 20000000"));
  EXPECT_THAT(error_of({.algorithm = "bcube"}, 65521), HasSubstr("at most 20000000"));
  EXPECT_THAT(error_of({.algorithm = "blueconnect"}, 65521), HasSubstr("at most 20000000"));
  EXPECT_THAT(error_of({.algorithm = "double-tree", .blocks = 1000}, 65536), HasSubstr("at most 20000000"));
  EXPECT_THAT(error_of({.algorithm = "racks", .factors = {65536, 1}}, 65536), HasSubstr("at most 20000000"));
  EXPECT_THAT(error_of({.algorithm = "two-level", .factors = {1, 65536}}, 65536), HasSubstr("at most 20000000"));
}

TEST(Algorithms, RefusesForeignParameters) {
  EXPECT_EQ(error_of({.algorithm = "ring", .factors = {2, 2}}, 4),
            "ring has no stages; only blueconnect, racks, two-level have");
  EXPECT_EQ(error_of({.algorithm = "ring", .radix = 2}, 4), "ring has no radix; only bcube has");
  EXPECT_EQ(error_of({.algorithm = "bcube", .blocks = 2}, 4), "bcube has no blocks; only double-tree has");
  EXPECT_EQ(error_of({.algorithm = "blueconnect", .group_sizes = {1}}, 1),
            "blueconnect has no groups; only racks, two-level have");
}

TEST(Algorithms, StagesMustFit) {
  EXPECT_THAT(error_of({.algorithm = "blueconnect", .factors = {3, 3}}, 12),
              HasSubstr("the stages 3,3 make 9 ranks, but there are 12; give factors of 12, for example 2,2,3"));
  EXPECT_THAT(error_of({.algorithm = "racks", .factors = {0, 12}}, 12), HasSubstr("a stage is 0"));
  EXPECT_THAT(error_of({.algorithm = "racks", .factors = {12}}, 12), HasSubstr("racks has 1 stages; give two"));
  EXPECT_THAT(error_of({.algorithm = "blueconnect", .factors = {65536, 65536, 65536, 65536}}, 12),
              HasSubstr("make 2^32 or more ranks"));
}

// A prime number of ranks has groups of two sizes.
TEST(Algorithms, GroupsAreNearTheRootByDefault) {
  for (const char* const algorithm : {"racks", "two-level"}) {
    EXPECT_EQ(made({.algorithm = algorithm}, 13).programs,
              made({.algorithm = algorithm, .group_sizes = {5, 4, 4}}, 13).programs);
    EXPECT_EQ(made({.algorithm = algorithm}, 16).programs,
              made({.algorithm = algorithm, .factors = {4, 4}}, 16).programs);
  }
}

TEST(Algorithms, GroupsMustFit) {
  const auto error = [](const Groups& groups) { return std::string(check_groups(groups, 3).message()); };
  EXPECT_EQ(error({{0, 1}}), "rank 2 is in no group");
  EXPECT_EQ(error({{0, 1}, {2, 1}}), "rank 1 occurs twice in the groups");
  EXPECT_EQ(error({{0, 1}, {2, 3}}), "group 1 names rank 3, but there are 3 ranks");
  EXPECT_EQ(error({{0, 1, 2}, {}}), "group 1 has no rank");
  EXPECT_EQ(error_of({.algorithm = "racks", .group_sizes = {2}}, 3), "rank 2 is in no group");
  EXPECT_EQ(error_of({.algorithm = "racks", .group_sizes = {2, 2}}, 3), "group 1 names rank 3, but there are 3 ranks");
  EXPECT_EQ(error_of({.algorithm = "racks", .group_sizes = {3, 0}}, 3), "group 1 has no rank");
  EXPECT_EQ(error_of({.algorithm = "racks", .factors = {1, 2}, .group_sizes = {2}}, 2), "give either stages or groups");
}

TEST(DoubleTree, AnyBlocks) {
  for (const uint32_t ranks : {1u, 2u, 7u, 12u, 32u}) {
    for (const uint32_t blocks : {1u, 2u, 5u, 31u}) {
      checked({.algorithm = "double-tree", .blocks = blocks}, ranks);
    }
  }
  EXPECT_EQ(made({.algorithm = "double-tree"}, 8).chunks, 2 * kDefaultTreeBlocks);
}

// A rank has children in at most one of the two trees, and so moves at most two vectors each way.
TEST(DoubleTree, NoRankIsInnerTwice) {
  for (const uint32_t ranks : tested_counts()) {
    const Schedule schedule = double_tree(ranks, 1);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      bool inner[2] = {false, false};
      for (const Op& op : schedule.programs[rank]) {
        if (op.kind == OpKind::kReceive && op.take == Take::kReduce) inner[op.slice.first] = true;
      }
      EXPECT_FALSE(inner[0] && inner[1]) << ranks << " " << rank;
      EXPECT_LE(chunks_of(schedule, rank).first, 2 * schedule.chunks);
      EXPECT_LE(chunks_of(schedule, rank).second, 2 * schedule.chunks);
    }
  }
}

TEST(DoubleTree, StepsGrowWithLogarithm) {
  EXPECT_EQ(double_tree(1, 4).steps, 0u);
  EXPECT_EQ(double_tree(2, 1).steps, 2u);
  EXPECT_EQ(double_tree(7, 1).steps, 4u);
  EXPECT_EQ(double_tree(8, 1).steps, 6u);
  EXPECT_EQ(double_tree(128, 5).steps, 18u);
}

TEST(Bcube, Radixes) {
  for (const auto& [ranks, radix] :
       {std::pair{8u, 2u}, {9u, 3u}, {27u, 3u}, {64u, 2u}, {64u, 4u}, {64u, 8u}, {64u, 64u}}) {
    const Schedule schedule = checked({.algorithm = "bcube", .radix = radix}, ranks);
    uint32_t rounds = 0;
    for (uint32_t power = 1; power < ranks; power *= radix) ++rounds;
    EXPECT_EQ(schedule.steps, 2 * rounds);
    ASSERT_EQ(schedule.stages.size(), rounds);
    EXPECT_EQ(schedule.stages[0][0].size(), radix);
    EXPECT_EQ(chunks_of(schedule, 0), std::pair(2 * (uint64_t{ranks} - 1), 2 * (uint64_t{ranks} - 1)));
  }
}

// Luo §5.2.1: in round i a rank sends S / B^(i+1) to each of B - 1 peers, whose numbers differ in digit i.
TEST(Bcube, RoundsShrink) {
  const Schedule schedule = made({.algorithm = "bcube", .radix = 4}, 64);
  std::vector<uint32_t> peers;
  for (const Op& op : schedule.programs[5]) {
    if (op.kind != OpKind::kSend || op.step >= 3) continue;
    EXPECT_EQ(op.slice.count, op.step == 0 ? 16u : op.step == 1 ? 4u : 1u);
    peers.push_back(op.peer);
  }
  EXPECT_THAT(peers, ElementsAre(6, 7, 4, 9, 13, 1, 21, 37, 53));
}

TEST(Bcube, DefaultRadix) {
  EXPECT_EQ(default_radix(1), 2u);
  EXPECT_EQ(default_radix(16), 4u);
  EXPECT_EQ(default_radix(8), 2u);
  EXPECT_EQ(default_radix(81), 3u);
  EXPECT_EQ(default_radix(12), 12u);
}

TEST(Bcube, RadixMustFit) {
  EXPECT_EQ(
      error_of({.algorithm = "bcube", .radix = 3}, 64),
      "bcube needs a power of the radix as the number of ranks; 64 is no power of 3: give the radix 2 or 4 or 8 or "
      "64");
  EXPECT_EQ(error_of({.algorithm = "bcube", .radix = 1}, 4), "the radix is 1; give 2 or more");
  EXPECT_THAT(error_of({.algorithm = "bcube", .radix = ~0u}, 4), HasSubstr("give the radix 2 or 4"));
}

TEST(BlueConnect, AllPairsOfFactors) {
  for (const uint32_t ranks : tested_counts()) {
    for (const std::vector<uint32_t>& stages : pairs_of(ranks)) {
      checked({.algorithm = "blueconnect", .factors = stages}, ranks);
    }
  }
  checked({.algorithm = "blueconnect", .factors = {2, 3, 4, 4}}, 96);
  checked({.algorithm = "blueconnect", .factors = {6, 16}}, 96);
}

// BlueConnect Fig. 2: 12 = 3 × 2 × 2. Stage 0 has 4 groups on the whole vector, stage 1 has 6 on a third of it, stage 2
// has 6 on a sixth.
TEST(BlueConnect, StagesOfFigure2) {
  const Schedule schedule = made({.algorithm = "blueconnect", .factors = {3, 2, 2}}, 12);
  ASSERT_EQ(schedule.stages.size(), 3u);
  EXPECT_THAT(schedule.stages[0],
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6, 7, 8), ElementsAre(9, 10, 11)));
  EXPECT_THAT(schedule.stages[1], ElementsAre(ElementsAre(0, 3), ElementsAre(1, 4), ElementsAre(2, 5),
                                              ElementsAre(6, 9), ElementsAre(7, 10), ElementsAre(8, 11)));
  EXPECT_EQ(schedule.stages[2].size(), 6u);
  EXPECT_EQ(schedule.steps, 8u);
  std::vector<uint64_t> sent(schedule.steps);
  for (const Op& op : schedule.programs[0]) {
    if (op.kind == OpKind::kSend) sent[op.step] += op.slice.count;
  }
  EXPECT_THAT(sent, ElementsAre(4, 4, 2, 1, 1, 2, 4, 4));
}

// BlueConnect §3: 96 = 16 × 6 takes 4 + 5 latency steps each way, and a ring takes 95.
TEST(BlueConnect, StepsOf96Ranks) {
  EXPECT_EQ(made({.algorithm = "blueconnect", .factors = {16, 6}}, 96).steps, 18u);
  EXPECT_EQ(made({.algorithm = "blueconnect", .factors = {32, 3}}, 96).steps, 14u);
  EXPECT_EQ(made({.algorithm = "blueconnect"}, 96).steps, 14u);
  EXPECT_EQ(made({.algorithm = "ring"}, 96).steps, 190u);
}

// The example of BlueConnect §3 with 192 ranks in 48 machines: the flat ring, and Eq. 6.
TEST(BlueConnect, SecondsByEquation6) {
  const double w0 = 32 * 8e9, w1 = 12.5 * 8e9, bytes = 102e6, alpha = 1e-6;
  EXPECT_NEAR(blueconnect_seconds({192}, bytes, alpha, {w1}), 2 * 191 * (alpha + bytes / 192 * 8 / w1), 1e-9);
  EXPECT_NEAR(blueconnect_seconds({4, 48}, bytes, alpha, {w0, w1}), 20.86e-3, 0.01e-3);
  // By Eq. 7 as printed, w1 would not count.
  EXPECT_GT(blueconnect_seconds({4, 48}, bytes, alpha, {w0, w1 / 2}), 1.5 * 20.86e-3);
}

// Racks whose uplink all ranks of a rack share are the network of Eq. 6: w0 is a host's link, w1 the uplink.
TEST(BlueConnect, CostAgreesWithEquation6) {
  const double w0 = 100e9, w1 = 150e9, alpha = 0;
  for (const auto& [hosts, racks] : {std::pair{3u, 4u}, {4u, 4u}, {6u, 5u}}) {
    const auto network = make_network(*topology::racks(racks, hosts, {w0, w1, alpha}));
    std::vector<uint32_t> host_of(hosts * racks);
    std::iota(host_of.begin(), host_of.end(), 0);
    const Schedule schedule = made({.algorithm = "blueconnect", .factors = {hosts, racks}}, hosts * racks);
    const double seconds = cost(schedule, network, host_of, 100'000'000)->seconds;
    const double expected = blueconnect_seconds({hosts, racks}, 100e6, alpha, {w0, w1});
    // Halving over uplinks sends both ways between two racks at a time, as a ring does: the same bytes cross an uplink.
    EXPECT_NEAR(seconds, expected, expected * 1e-9) << hosts << "x" << racks;
  }
}

TEST(Racks, AllPairsOfFactors) {
  for (const uint32_t ranks : tested_counts()) {
    for (const std::vector<uint32_t>& stages : pairs_of(ranks)) {
      const Schedule schedule = checked({.algorithm = "racks", .factors = stages}, ranks);
      ASSERT_EQ(schedule.stages.size(), 2u);
      EXPECT_EQ(schedule.stages[0].size(), stages[0]);
      EXPECT_EQ(schedule.stages[1][0].size(), stages[0]);
    }
  }
}

TEST(Racks, GroupsOfAnySizes) {
  const Schedule schedule = racks(7, {{6, 0}, {5}, {1, 2, 3, 4}});
  EXPECT_EQ(check(schedule), absl::OkStatus());
  EXPECT_THAT(schedule.stages[1], ElementsAre(ElementsAre(6, 5, 1)));
}

// PHub in Luo §2.3: between racks, a master sends 2(r-1)/r vectors.
TEST(Racks, LittleCrossesRacks) {
  const Schedule schedule = made({.algorithm = "racks", .factors = {4, 8}}, 32);
  EXPECT_EQ(schedule.steps, 2u + 6u);
  uint64_t across = 0;
  for (const Op& op : schedule.programs[8]) across += op.kind == OpKind::kSend && op.peer / 8 != 1 ? op.slice.count : 0;
  EXPECT_EQ(across, 6u);
  EXPECT_EQ(schedule.chunks, 4u);
}

TEST(TwoLevel, AllPairsOfFactors) {
  for (const uint32_t ranks : tested_counts()) {
    for (const std::vector<uint32_t>& stages : pairs_of(ranks)) {
      checked({.algorithm = "two-level", .factors = stages}, ranks);
    }
  }
}

TEST(TwoLevel, GroupsOfAnySizes) {
  EXPECT_EQ(check(two_level(7, {{6, 0}, {5}, {1, 2, 3, 4}})), absl::OkStatus());
  checked({.algorithm = "two-level", .group_sizes = even_sizes(33, 7)}, 33);
}

// A rank sends a chunk once if it masters it for nobody, |G(i)| times as a plain local master, and |G(i)| - 1 + |G| - 1
// times as the global master (Quicktune's terms in Luo §4.2.3, without the rank itself).
TEST(TwoLevel, MastersTakeTheirChunks) {
  const Groups groups = {{6, 0}, {5}, {1, 2, 3, 4}};
  const std::vector<uint32_t> global = {3, 0, 2, 0, 1, 0, 4}, local = {4, 0, 7, 2, 1, 10, 6};
  const MasterCounts counts{global, local};
  const Schedule schedule = two_level(7, groups, &counts);
  EXPECT_EQ(check(schedule), absl::OkStatus());
  EXPECT_EQ(schedule.chunks, 10u);
  for (const std::vector<uint32_t>& group : groups) {
    for (const uint32_t rank : group) {
      const uint64_t size = group.size(), plain = local[rank] - global[rank];
      const uint64_t each = 10 - local[rank] + plain * size + global[rank] * (size - 1 + 2);
      EXPECT_EQ(chunks_of(schedule, rank), std::pair(each, each)) << rank;
    }
  }
}

TEST(TwoLevel, OneChunkForEachRankIsTheDefault) {
  for (const uint32_t groups : {2u, 3u, 4u}) {
    const uint32_t ranks = 12, members = ranks / groups;
    const std::vector<uint32_t> global(ranks, 1), local(ranks, groups);
    const Schedule given =
        checked({.algorithm = "two-level", .factors = {groups, members}, .masters = {global, local}}, ranks);
    const Schedule usual = made({.algorithm = "two-level", .factors = {groups, members}}, ranks);
    for (uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(chunks_of(given, rank), chunks_of(usual, rank));
  }
}

TEST(TwoLevel, MastersMustFit) {
  const auto refusal = [](std::vector<uint32_t> global, std::vector<uint32_t> local) {
    const Spec spec{.algorithm = "two-level", .factors = {2, 2}, .masters = {std::move(global), std::move(local)}};
    return std::string(make_schedule(spec, 4).status().message());
  };
  EXPECT_EQ(refusal({1, 1, 1, 1}, {2, 2, 2, 2}), "");
  EXPECT_THAT(refusal({1, 1, 1}, {2, 2, 2, 2}), HasSubstr("3 numbers of global"));
  EXPECT_THAT(refusal({1, 1, 1, 1}, {}), HasSubstr("0 of local"));
  EXPECT_THAT(refusal({0, 0, 0, 0}, {0, 0, 0, 0}), HasSubstr("masters of 0 chunks"));
  EXPECT_THAT(refusal({3, 0, 1, 0}, {2, 2, 2, 2}), HasSubstr("rank 0 is the global master of 3 chunks"));
  EXPECT_THAT(refusal({1, 1, 1, 1}, {2, 1, 2, 2}), HasSubstr("group of rank 0 has local masters for 3 chunks"));
  EXPECT_THAT(make_schedule({.algorithm = "ring", .masters = {{1, 1}, {}}}, 2).status().message(),
              HasSubstr("ring has no masters"));
}

// With g groups of m ranks, a local master of g chunks receives them from m - 1 ranks, sends g - 1 of them on, and
// receives one from g - 1 groups as their global master. The same comes back.
TEST(TwoLevel, IsBalanced) {
  const uint32_t groups = 4, members = 8, ranks = groups * members;
  const Schedule schedule = made({.algorithm = "two-level", .factors = {groups, members}}, ranks);
  EXPECT_EQ(schedule.steps, 4u);
  const uint64_t each = 2 * (groups * (members - 1) + groups - 1);
  for (uint32_t rank = 0; rank < ranks; ++rank) EXPECT_EQ(chunks_of(schedule, rank), std::pair(each, each)) << rank;
}

// Luo Table 4.1 with C groups of N ranks: 2(NC - 1) S bytes in all, 2(C - 1) S of them between groups.
TEST(TwoLevel, BytesOfTable41) {
  const Schedule schedule = made({.algorithm = "two-level", .factors = {5, 7}}, 35);
  uint64_t all = 0, across = 0;
  for (uint32_t rank = 0; rank < 35; ++rank) {
    for (const Op& op : schedule.programs[rank]) {
      if (op.kind != OpKind::kSend) continue;
      all += op.slice.count;
      if (op.peer / 7 != rank / 7) across += op.slice.count;
    }
  }
  EXPECT_EQ(all, 2u * 34 * 35);
  EXPECT_EQ(across, 2u * 4 * 35);
}

TEST(TwoLevel, DefaultGroups) {
  EXPECT_EQ(default_groups(1), 1u);
  EXPECT_EQ(default_groups(35), 5u);
  EXPECT_EQ(default_groups(36), 6u);
  const Schedule schedule = made({.algorithm = "two-level"}, 11);
  EXPECT_THAT(schedule.stages[0], ElementsAre(ElementsAre(0, 1, 2, 3), ElementsAre(4, 5, 6, 7), ElementsAre(8, 9, 10)));
}

TEST(Algorithms, CostsOnStar) {
  const double bits = 100e9, alpha = 2e-6;
  const uint64_t bytes = 64 << 20;
  const auto near = [](double seconds, double expected) { EXPECT_NEAR(seconds, expected, expected * 1e-9); };
  // A stage costs as much on a star as in Eq. 1.
  near(star_seconds(made({.algorithm = "blueconnect", .factors = {3, 4}}, 12), bits, alpha, bytes),
       2 * 4 * alpha + 2 * 11.0 / 12 * bytes * 8 / bits);
  // Luo §5.2.1, with all B - 1 messages of a rank on its link.
  near(star_seconds(made({.algorithm = "bcube", .radix = 4}, 64), bits, alpha, bytes),
       2 * 3 * alpha + 2 * 63.0 / 64 * bytes * 8 / bits);
  near(star_seconds(made({.algorithm = "two-level", .factors = {4, 8}}, 32), bits, alpha, bytes),
       4 * alpha + 2 * (4 * 7 + 3) / 32.0 * bytes * 8 / bits);
  near(star_seconds(made({.algorithm = "racks", .factors = {3, 4}}, 12), bits, alpha, bytes),
       6 * alpha + (2 * 3 + 2 * 2 / 3.0) * bytes * 8 / bits);
}

}  // namespace
}  // namespace gleaner::collective
