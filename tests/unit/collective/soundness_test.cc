// Tests that what the checker accepts is right: executes accepted schedules, some of them changed at random, without
// copies of sent slices and in random orders, and compares with plain sums.
#include <gtest/gtest.h>

#include <bit>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/collective/algorithms.h"
#include "common/collective/checker.h"
#include "common/collective/messages.h"

namespace gleaner::collective {
namespace {

using ChunkSums = std::vector<std::vector<uint64_t>>;  // by rank, then chunk

// Returns the contribution of a rank to a chunk. Sums show how often each rank was added.
uint64_t own_value(uint32_t rank) { return uint64_t{1} << (4 * rank); }
constexpr uint64_t kScratch = uint64_t{1} << 60;

// Executes a schedule; a receive reads the sender's vector as it is then. Picks the next rank at random.
ChunkSums execute_without_copies(const Schedule& schedule, std::mt19937& random) {
  const Messages messages = *Messages::make(schedule);
  ChunkSums vectors(schedule.ranks, std::vector<uint64_t>(schedule.chunks, kScratch));
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    for (uint32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
      if (schedule.begins_with(rank, schedule.block_of(chunk))) vectors[rank][chunk] = own_value(rank);
    }
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
      for (uint32_t chunk = op.slice.first; op.kind == OpKind::kReceive && chunk < op.slice.first + op.slice.count;
           ++chunk) {
        const uint64_t value = vectors[op.peer][chunk];
        vectors[rank][chunk] = op.take == Take::kReduce ? vectors[rank][chunk] + value : value;
      }
    }
  }
}

// Expects that each rank ends with the postcondition of the schedule.
void expect_results(const Schedule& schedule, std::mt19937& random, const std::string& what) {
  uint64_t sum = 0;
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) sum += own_value(rank);
  for (int order = 0; order < 4; ++order) {
    const ChunkSums vectors = execute_without_copies(schedule, random);
    for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
      for (uint32_t chunk = 0; chunk < schedule.chunks; ++chunk) {
        const uint32_t block = schedule.block_of(chunk);
        if (!schedule.ends_with(rank, block)) continue;
        const auto only = schedule.contributor(block);
        EXPECT_EQ(vectors[rank][chunk], only.has_value() ? own_value(*only) : sum) << what << " " << rank;
      }
    }
  }
}

Schedule made(const Collective& collective, absl::string_view algorithm) {
  Spec spec{.algorithm = std::string(algorithm)};
  const uint32_t ranks = collective.ranks;
  if (algorithm == "racks") spec.factors = ranks % 2 == 0 ? std::vector{2u, ranks / 2} : std::vector{1u, ranks};
  if (algorithm == "double-tree") spec.blocks = 2;
  return *make_schedule(spec, collective);
}

// Returns the places of a message in the programs of its ranks.
std::pair<Op*, Op*> ends_of(Schedule& schedule, const Message& message) {
  return {&schedule.programs[message.from][message.send], &schedule.programs[message.to][message.receive]};
}

void erase_message(Schedule& schedule, const Message& message) {
  std::vector<Op>&from = schedule.programs[message.from], &to = schedule.programs[message.to];
  from.erase(from.begin() + message.send);
  to.erase(to.begin() + message.receive);
}

// Changes one operation.
void change_operation(Schedule& schedule, std::mt19937& random) {
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

// Changes both sides of a message, or the root.
void change_message(Schedule& schedule, std::mt19937& random) {
  const absl::StatusOr<Messages> messages = Messages::make(schedule);
  if (!messages.ok() || messages->all().empty()) return;
  const Message& message = messages->all()[random() % messages->all().size()];
  const Message& other = messages->all()[random() % messages->all().size()];
  const auto [send, receive] = ends_of(schedule, message);
  switch (random() % 4) {
    case 0:
      send->take = receive->take = message.take == Take::kReduce ? Take::kCopy : Take::kReduce;
      break;
    case 1:
      send->slice = receive->slice = other.slice;
      break;
    case 2:
      erase_message(schedule, message);
      break;
    case 3:
      schedule.root = random() % schedule.ranks;
      break;
  }
}

// Returns a collective with every number of ranks from `least` to `most`, and every root that it can have.
std::vector<Collective> collectives(Postcondition postcondition, uint32_t least, uint32_t most) {
  std::vector<Collective> all;
  for (uint32_t ranks = least; ranks <= most; ++ranks) {
    for (uint32_t root = 0; root < (has_root(postcondition) ? ranks : 1); ++root) {
      all.push_back({ranks, postcondition, root});
    }
  }
  return all;
}

bool serves(absl::string_view algorithm, uint32_t ranks) {
  return algorithm != "halving" || std::has_single_bit(ranks);
}

TEST(Soundness, AlgorithmsNeedNoCopies) {
  std::mt19937 random(1);
  for (const Postcondition postcondition : postconditions()) {
    for (const Collective& collective : collectives(postcondition, 1, 13)) {
      for (const absl::string_view algorithm : algorithms(postcondition)) {
        if (!serves(algorithm, collective.ranks)) continue;
        expect_results(made(collective, algorithm), random,
                       absl::StrCat(name_of(postcondition), " ", algorithm, " ", collective.ranks));
      }
    }
  }
}

// A schedule that was changed in one or two places is rejected, or still has its results in every order.
TEST(Soundness, AcceptedSchedulesHaveTheirResults) {
  for (const Postcondition postcondition : postconditions()) {
    int accepted = 0, rejected = 0;
    for (const absl::string_view algorithm : algorithms(postcondition)) {
      for (uint32_t seed = 0; seed < 300; ++seed) {
        std::mt19937 random(seed);
        const uint32_t ranks = algorithm == "halving" ? 2u << seed % 3 : 2 + seed % 5;
        Schedule schedule = made({ranks, postcondition, has_root(postcondition) ? seed / 7 % ranks : 0}, algorithm);
        for (uint32_t i = 0; i <= seed % 2; ++i) {
          if (seed % 3 == 0) change_message(schedule, random);
          if (seed % 3 != 0) change_operation(schedule, random);
        }
        for (std::vector<Op>& program : schedule.programs) {
          for (Op& op : program) op.step = 0;  // so that another order of operations is not rejected for its steps
        }
        const bool is_accepted = check(schedule).ok();
        ++(is_accepted ? accepted : rejected);
        if (!is_accepted) continue;
        expect_results(schedule, random, absl::StrCat(name_of(postcondition), " ", algorithm, " seed ", seed));
      }
    }
    EXPECT_GT(accepted, 10) << name_of(postcondition);
    EXPECT_GT(rejected, 100) << name_of(postcondition);
  }
}

// No algorithm sends a message in vain, but the ring of scatter-ring, which carries chunks to ranks of the tree again.
TEST(Soundness, EveryMessageIsNeeded) {
  for (const Postcondition postcondition : postconditions()) {
    for (const Collective& collective : collectives(postcondition, 2, 6)) {
      for (const absl::string_view algorithm : algorithms(postcondition)) {
        if (!serves(algorithm, collective.ranks) || algorithm == "scatter-ring") continue;
        const Schedule whole = made(collective, algorithm);
        const Messages messages = *Messages::make(whole);
        for (const Message& message : messages.all()) {
          Schedule schedule = whole;
          erase_message(schedule, message);
          EXPECT_FALSE(check(schedule).ok()) << name_of(postcondition) << " " << algorithm << " " << message.from;
        }
      }
    }
  }
}

TEST(Soundness, OtherRootsAreRefused) {
  for (const Postcondition postcondition : postconditions()) {
    if (!has_root(postcondition)) continue;
    for (const Collective& collective : collectives(postcondition, 2, 7)) {
      for (const absl::string_view algorithm : algorithms(postcondition)) {
        Schedule schedule = made(collective, algorithm);
        schedule.root = (collective.root + 1) % collective.ranks;
        EXPECT_FALSE(check(schedule).ok()) << name_of(postcondition) << " " << algorithm << " " << collective.ranks;
      }
    }
  }
}

}  // namespace
}  // namespace gleaner::collective
