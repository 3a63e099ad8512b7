// Tests that what the checker accepts is right: executes accepted schedules, some of them changed at random, without
// copies of sent slices and in random orders, and compares with plain sums.
#include <gtest/gtest.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "common/collective/algorithms.h"
#include "common/collective/checker.h"
#include "common/collective/messages.h"

namespace gleaner::collective {
namespace {

using ChunkSums = std::vector<std::vector<uint64_t>>;  // by rank, then chunk

// Executes a schedule; a receive reads the sender's vector as it is then. Picks the next rank at random.
ChunkSums execute_without_copies(const Schedule& schedule, std::mt19937& random) {
  const Messages messages = *Messages::make(schedule);
  ChunkSums vectors(schedule.ranks);
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    // Sums show how often each rank was added.
    const uint64_t own = uint64_t{1} << (4 * rank);
    vectors[rank].assign(schedule.chunks, schedule.blocks() == 1 ? own : 0);
    if (schedule.blocks() > 1) vectors[rank][rank] = own;
  }
  std::vector<uint32_t> next(schedule.ranks, 0);
  const auto ready = [&](uint32_t rank) {
    if (next[rank] == schedule.programs[rank].size()) return false;
    const Message& message = messages.all()[messages.index_of(rank, next[rank])];
    return message.from == rank || next[message.from] > message.send;
  };
  for (;;) {
    std::vector<uint32_t> choices;
    for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
      if (ready(rank)) choices.push_back(rank);
    }
    if (choices.empty()) return vectors;
    // Prefers one rank for a while, so that it gets far ahead of others.
    const uint32_t rank = choices[random() % choices.size()];
    for (uint32_t left = 1 + random() % 4; left > 0 && ready(rank); --left) {
      const Op& op = schedule.programs[rank][next[rank]++];
      for (uint32_t chunk = op.slice.first; op.kind != OpKind::kSend && chunk < op.slice.first + op.slice.count;
           ++chunk) {
        const uint64_t value = vectors[op.peer][chunk];
        vectors[rank][chunk] = op.kind == OpKind::kReceiveReduce ? vectors[rank][chunk] + value : value;
      }
    }
  }
}

// Expects that each rank ends with the postcondition of the schedule.
void expect_sums(const Schedule& schedule, std::mt19937& random, const std::string& what) {
  std::vector<uint64_t> expected;
  uint64_t sum = 0;
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    expected.push_back(uint64_t{1} << (4 * rank));
    sum += expected.back();
  }
  if (schedule.postcondition == Postcondition::kAllReduce) expected.assign(schedule.chunks, sum);
  for (int order = 0; order < 4; ++order) {
    EXPECT_EQ(execute_without_copies(schedule, random), ChunkSums(schedule.ranks, expected)) << what;
  }
}

Schedule made(absl::string_view algorithm, uint32_t ranks) {
  Spec spec{.algorithm = std::string(algorithm)};
  if (algorithm == "racks") spec.factors = ranks % 2 == 0 ? std::vector{2u, ranks / 2} : std::vector{1u, ranks};
  if (algorithm == "double-tree") spec.blocks = 2;
  return *make_schedule(spec, ranks);
}

// Changes one thing. The steps stay as they are.
void change(Schedule& schedule, std::mt19937& random) {
  std::vector<Op>& program = schedule.programs[random() % schedule.ranks];
  if (program.empty()) return;
  Op& op = program[random() % program.size()];
  Op& other = program[random() % program.size()];
  switch (random() % 5) {
    case 0:
      std::swap(op, other);
      break;
    case 1:
      op.peer = random() % schedule.ranks;
      break;
    case 2:
      op.slice = other.slice;
      break;
    case 3:
      op.kind = other.kind;
      break;
    case 4:
      program.erase(program.begin() + (&op - program.data()));
      break;
  }
}

TEST(Soundness, AlgorithmsSumWithoutCopies) {
  std::mt19937 random(1);
  for (const absl::string_view algorithm : algorithms()) {
    for (uint32_t ranks = 1; ranks <= 13; ++ranks) {
      expect_sums(made(algorithm, ranks), random, absl::StrCat(algorithm, " ", ranks));
    }
  }
}

// A schedule that was changed in one or two places is rejected, or still sums in every order.
TEST(Soundness, AcceptedSchedulesSum) {
  int accepted = 0;
  for (const absl::string_view algorithm : algorithms()) {
    for (uint32_t seed = 0; seed < 150; ++seed) {
      std::mt19937 random(seed);
      Schedule schedule = made(algorithm, 2 + seed % 5);
      for (uint32_t i = 0; i <= seed % 2; ++i) change(schedule, random);
      for (std::vector<Op>& program : schedule.programs) {
        for (Op& op : program) op.step = 0;  // so that another order of operations is not rejected for its steps
      }
      if (!check(schedule).ok()) continue;
      ++accepted;
      expect_sums(schedule, random, absl::StrCat(algorithm, " seed ", seed));
    }
  }
  EXPECT_GT(accepted, 100);
}

}  // namespace
}  // namespace gleaner::collective
