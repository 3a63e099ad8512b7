// Tests of the engine's small parts: MemoryBudget, Releases and WorkerSet.
#include <gtest/gtest.h>

#include "summation-service/engine/memory_budget.h"
#include "summation-service/engine/releases.h"
#include "summation-service/engine/worker_set.h"

namespace gleaner::testing {
namespace {

TEST(MemoryBudget, HasRoomUpToCap) {
  engine::MemoryBudget memory(10);
  EXPECT_TRUE(memory.has_room(0, 10));
  EXPECT_FALSE(memory.has_room(0, 11));
  memory.reserve(0, 6);
  EXPECT_TRUE(memory.has_room(0, 4));
  EXPECT_FALSE(memory.has_room(0, 5));
  EXPECT_TRUE(memory.can_ever_fit(10)) << "the answer does not depend on the reserved memory";
  EXPECT_FALSE(memory.can_ever_fit(11));
  memory.release(0, 2);
  EXPECT_TRUE(memory.has_room(0, 6));
  EXPECT_EQ(memory.reserved(), 4u);
}

TEST(MemoryBudget, KeepsLeastOfOtherGroups) {
  engine::MemoryBudget memory(10);
  memory.set_least({4, 3});
  EXPECT_TRUE(memory.has_room(0, 7));
  EXPECT_FALSE(memory.has_room(0, 8)) << "3 are kept for group 1";
  memory.reserve(0, 7);
  EXPECT_TRUE(memory.has_room(1, 3));
  memory.reserve(1, 2);
  EXPECT_FALSE(memory.has_room(0, 1)) << "1 is kept for group 1";
  EXPECT_FALSE(memory.has_room(1, 2));
  memory.release(0, 7);
  EXPECT_TRUE(memory.has_room(1, 4));
  EXPECT_FALSE(memory.has_room(1, 5)) << "4 are kept for group 0";
}

TEST(MemoryBudget, NewGroupHasItsLeast) {
  engine::MemoryBudget memory(10);
  memory.reserve(0, 10);
  memory.set_least({4, 3});
  EXPECT_TRUE(memory.has_room(1, 3));
  EXPECT_FALSE(memory.has_room(1, 4));
  memory.reserve(1, 3);
  EXPECT_FALSE(memory.has_room(0, 1));
}

TEST(MemoryBudget, WithoutACapEverythingFits) {
  engine::MemoryBudget memory(0);
  memory.reserve(0, uint64_t{1} << 60);
  EXPECT_TRUE(memory.has_room(0, uint64_t{1} << 60));
}

TEST(Releases, FirstUnreleasedSkipsReleasedNumbers) {
  engine::Releases releases;
  for (uint32_t number = 0; number < 200; ++number) EXPECT_EQ(releases.add(), number);
  for (uint32_t number = 199; number > 0; --number) releases.release(number);
  EXPECT_EQ(releases.first_unreleased(), 0u);
  releases.release(0);
  EXPECT_EQ(releases.first_unreleased(), 200u);
  EXPECT_EQ(releases.add(), 200u);
  EXPECT_EQ(releases.first_unreleased(), 200u);
}

TEST(WorkerSet, ContainsAddedWorkers) {
  engine::WorkerSet workers(130);
  workers.add(129);
  workers.add(64);
  EXPECT_TRUE(workers.contains(64));
  EXPECT_TRUE(workers.contains(129));
  EXPECT_FALSE(workers.contains(0));
  EXPECT_FALSE(workers.contains(65));
  EXPECT_EQ(workers.first(), 64u);
  workers.clear();
  EXPECT_FALSE(workers.contains(64));
  workers.add(1);
  EXPECT_EQ(workers.first(), 1u);
}

}  // namespace
}  // namespace gleaner::testing
