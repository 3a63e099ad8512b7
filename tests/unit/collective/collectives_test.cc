// Tests every algorithm of every collective: its postcondition, its results, and the programs of single ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/collective/algorithms.h"
#include "common/collective/checker.h"
#include "common/collective/messages.h"
#include "common/collective/oracle.h"

namespace gleaner::collective {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kMostRanks = 17;

// Calls `run` with each algorithm of each collective, with 1 to 17 ranks and every root.
template <typename Run>
void for_each(Run run) {
  for (const Postcondition postcondition : postconditions()) {
    for (const absl::string_view algorithm : algorithms(postcondition)) {
      for (uint32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
        if (algorithm == "halving" && !std::has_single_bit(ranks)) continue;
        Spec spec{.algorithm = std::string(algorithm)};
        if (algorithm == "racks") spec.group_sizes = {ranks / 2, ranks - ranks / 2};
        if (algorithm == "racks" && ranks == 1) spec.group_sizes = {1};
        for (uint32_t root = 0; root < (has_root(postcondition) ? ranks : 1); ++root) {
          SCOPED_TRACE(absl::StrCat(name_of(postcondition), " ", algorithm, " ", ranks, " root ", root));
          run(spec, Collective{ranks, postcondition, root});
        }
      }
    }
  }
}

using Values = std::vector<int32_t>;

// Returns what a rank contributes to a block.
Values contribution(uint32_t rank, uint32_t block, size_t elements) {
  Values values;
  for (size_t i = 0; i < elements; ++i) {
    values.push_back(static_cast<int32_t>(rank * 100'000 + block * 100 + static_cast<uint32_t>(i) + 1));
  }
  return values;
}

Values sum(uint32_t ranks, uint32_t block, size_t elements) {
  Values values(elements);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    const Values added = contribution(rank, block, elements);
    for (size_t i = 0; i < elements; ++i) values[i] += added[i];
  }
  return values;
}

void append(Values& all, const Values& more) { all.insert(all.end(), more.begin(), more.end()); }

// Returns the input of a rank, as MPI and torch.distributed have it.
Values input_of(const Collective& collective, uint32_t rank, size_t elements) {
  const uint32_t n = collective.ranks;
  const bool is_root = rank == collective.root;
  Values all;
  switch (collective.postcondition) {
    case Postcondition::kAllReduce:
    case Postcondition::kReduce:
      return contribution(rank, 0, elements);
    case Postcondition::kBroadcast:
      return is_root ? contribution(rank, 0, elements) : all;
    case Postcondition::kAllGather:
    case Postcondition::kGather:
      return contribution(rank, rank, elements);
    case Postcondition::kReduceScatter:
      for (uint32_t block = 0; block < n; ++block) append(all, contribution(rank, block, elements));
      return all;
    case Postcondition::kScatter:
      for (uint32_t block = 0; is_root && block < n; ++block) append(all, contribution(rank, block, elements));
      return all;
    case Postcondition::kAllToAll:
      for (uint32_t to = 0; to < n; ++to) append(all, contribution(rank, rank * n + to, elements));
      return all;
  }
  return all;
}

Values result_of(const Collective& collective, uint32_t rank, size_t elements) {
  const uint32_t n = collective.ranks, root = collective.root;
  Values all;
  switch (collective.postcondition) {
    case Postcondition::kAllReduce:
      return sum(n, 0, elements);
    case Postcondition::kReduce:
      return rank == root ? sum(n, 0, elements) : all;
    case Postcondition::kBroadcast:
      return contribution(root, 0, elements);
    case Postcondition::kAllGather:
      for (uint32_t from = 0; from < n; ++from) append(all, contribution(from, from, elements));
      return all;
    case Postcondition::kReduceScatter:
      return sum(n, rank, elements);
    case Postcondition::kGather:
      for (uint32_t from = 0; rank == root && from < n; ++from) append(all, contribution(from, from, elements));
      return all;
    case Postcondition::kScatter:
      return contribution(root, rank, elements);
    case Postcondition::kAllToAll:
      for (uint32_t from = 0; from < n; ++from) append(all, contribution(from, from * n + rank, elements));
      return all;
  }
  return all;
}

std::vector<std::byte> stored(const Values& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

TEST(Collectives, SchedulesHaveTheirPostconditions) {
  for_each([](const Spec& spec, const Collective& collective) {
    const absl::StatusOr<Schedule> schedule = make_schedule(spec, collective);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    EXPECT_EQ(check(*schedule), absl::OkStatus());
    EXPECT_EQ(schedule->algorithm, spec.algorithm);
    EXPECT_EQ(schedule->ranks, collective.ranks);
    EXPECT_EQ(schedule->root, collective.root);
    const bool is_gathered = collective.postcondition == Postcondition::kAllReduce && spec.algorithm == "gather";
    EXPECT_EQ(schedule->postcondition, is_gathered ? Postcondition::kAllGather : collective.postcondition);
  });
}

TEST(Collectives, ResultsOfEveryAlgorithm) {
  constexpr Reduction kReduction{DataType::kInt32, DataType::kInt32, 1};
  for_each([&](const Spec& spec, const Collective& collective) {
    const Schedule schedule = *make_schedule(spec, collective);
    const bool is_all_reduce = collective.postcondition == Postcondition::kAllReduce;
    for (const size_t elements : {0, 1, 5}) {
      std::vector<std::vector<std::byte>> inputs, expected;
      for (uint32_t rank = 0; rank < collective.ranks; ++rank) {
        inputs.push_back(stored(input_of(collective, rank, elements)));
        expected.push_back(stored(result_of(collective, rank, elements)));
      }
      const auto results =
          is_all_reduce ? execute_all_reduce(schedule, kReduction, inputs) : execute(schedule, kReduction, inputs);
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_EQ(*results, expected);
    }
  });
}

TEST(Collectives, ProgramOfOneRank) {
  for_each([](const Spec& spec, const Collective& collective) {
    const Schedule whole = *make_schedule(spec, collective);
    for (uint32_t rank = 0; rank < collective.ranks; ++rank) {
      const Schedule one = *make_schedule(spec, collective, rank);
      EXPECT_EQ(one.programs[rank], whole.programs[rank]);
      EXPECT_EQ(one.chunks, whole.chunks);
      EXPECT_EQ(one.steps, whole.steps);
      for (uint32_t other = 0; other < collective.ranks; ++other) {
        EXPECT_TRUE(other == rank || one.programs[other].empty());
      }
    }
  });
}

TEST(Collectives, FewestStepsOfTrees) {
  for (const Postcondition postcondition :
       {Postcondition::kReduce, Postcondition::kBroadcast, Postcondition::kGather, Postcondition::kScatter}) {
    for (uint32_t ranks = 1; ranks <= kMostRanks; ++ranks) {
      const Schedule schedule = *make_schedule({.algorithm = "binomial"}, {ranks, postcondition, ranks / 2});
      EXPECT_EQ(schedule.steps, static_cast<uint32_t>(std::bit_width(ranks - 1)));
    }
  }
  const Schedule schedule = *make_schedule({.algorithm = "scatter-ring"}, {8, Postcondition::kBroadcast, 3});
  EXPECT_EQ(schedule.steps, 3u + 7u);
  EXPECT_EQ(schedule.chunks, 8u);
}

// In each step of an all-to-all a rank sends one block and receives one.
TEST(Collectives, AllToAllRotates) {
  const Schedule schedule = *make_schedule({.algorithm = "direct"}, {5, Postcondition::kAllToAll});
  EXPECT_EQ(schedule.steps, 4u);
  std::vector<uint32_t> sent_to, received_from;
  for (const Op& op : schedule.programs[3]) {
    EXPECT_EQ(op.step, op.kind == OpKind::kSend ? sent_to.size() : received_from.size());
    (op.kind == OpKind::kSend ? sent_to : received_from).push_back(op.peer);
  }
  EXPECT_THAT(sent_to, ElementsAre(4, 0, 1, 2));
  EXPECT_THAT(received_from, ElementsAre(2, 1, 0, 4));
}

// Every rank sends and receives the fewest blocks possible.
TEST(Collectives, HalvesMoveFewestBlocks) {
  for (const auto& [postcondition, algorithm] : {std::pair{Postcondition::kAllGather, "ring"},
                                                 {Postcondition::kReduceScatter, "ring"},
                                                 {Postcondition::kReduceScatter, "halving"},
                                                 {Postcondition::kReduceScatter, "direct"}}) {
    const Schedule schedule = *make_schedule({.algorithm = algorithm}, {16, postcondition});
    for (const std::vector<Op>& program : schedule.programs) {
      uint32_t sent = 0, received = 0;
      for (const Op& op : program) (op.kind == OpKind::kSend ? sent : received) += op.slice.count;
      EXPECT_EQ(sent, 15u) << algorithm;
      EXPECT_EQ(received, 15u) << algorithm;
    }
  }
}

TEST(Collectives, NamesAreUnique) {
  for (const Postcondition postcondition : postconditions()) {
    EXPECT_EQ(postcondition_named(name_of(postcondition)), postcondition);
  }
  EXPECT_EQ(postconditions().size(), 8u);
  EXPECT_EQ(postcondition_named("barrier"), std::nullopt);
}

TEST(Collectives, AlgorithmsOfEach) {
  EXPECT_THAT(algorithms(Postcondition::kReduce), ElementsAre("binomial"));
  EXPECT_THAT(algorithms(Postcondition::kBroadcast), ElementsAre("binomial", "scatter-ring"));
  EXPECT_THAT(algorithms(Postcondition::kAllGather), ElementsAre("ring", "gather", "direct"));
  EXPECT_THAT(algorithms(Postcondition::kReduceScatter), ElementsAre("ring", "halving", "direct"));
  EXPECT_THAT(algorithms(Postcondition::kGather), ElementsAre("direct", "binomial"));
  EXPECT_THAT(algorithms(Postcondition::kScatter), ElementsAre("direct", "binomial"));
  EXPECT_THAT(algorithms(Postcondition::kAllToAll), ElementsAre("direct"));
}

TEST(Collectives, ErrorsSayWhatWouldDo) {
  const auto error = [](const Spec& spec, const Collective& collective) {
    return std::string(make_schedule(spec, collective).status().message());
  };
  EXPECT_EQ(error({.algorithm = "double-tree"}, {4, Postcondition::kBroadcast}),
            "broadcast has no algorithm 'double-tree'; give one of binomial, scatter-ring");
  EXPECT_EQ(error({.algorithm = "ring"}, {4, Postcondition::kReduce}), "reduce has no algorithm 'ring'; give binomial");
  EXPECT_EQ(error({.algorithm = "halving"}, {4}),
            "all-reduce has no algorithm 'halving'; give one of ring, halving-doubling, double-tree, bcube, "
            "blueconnect, gather, racks, two-level");
  EXPECT_EQ(error({.algorithm = "halving"}, {12, Postcondition::kReduceScatter}),
            "halving needs a power of two as the number of ranks; 12 is none: give the algorithm ring or direct");
  EXPECT_EQ(error({.algorithm = "direct"}, {1025, Postcondition::kAllToAll}),
            "the number of ranks is 1025; give 1 to 1024, the most that all-to-all supports");
  EXPECT_EQ(error({.algorithm = "direct"}, {1024, Postcondition::kAllToAll}), "");
  EXPECT_EQ(error({.algorithm = "binomial"}, {4, Postcondition::kReduce, 4}),
            "the root is rank 4, but there are 4 ranks; give 0 to 3");
  EXPECT_EQ(error({.algorithm = "ring"}, {4, Postcondition::kAllGather, 1}),
            "the root is rank 1, but all-gather has no root; only reduce, broadcast, gather and scatter have");
  EXPECT_EQ(error({.algorithm = "ring", .radix = 2}, {4, Postcondition::kAllGather}),
            "ring has no radix; nor has another algorithm of all-gather");
  EXPECT_THAT(error({.algorithm = "ring"}, {65536, Postcondition::kAllGather}), HasSubstr("at most 20000000"));
}

}  // namespace
}  // namespace gleaner::collective
