// Tests that pushing a partition and taking its result cause no allocations after a warm-up.
#include <gtest/gtest.h>

#include <utility>

#include "tests/unit/engine/allocation_counter.h"
#include "tests/unit/session/session_rig.h"

namespace gleaner::testing {
namespace {

// Runs one step of 40 partitions of four owners. Some pushes are deferred, all results come twice, and one connection
// is lost.
void run_step(SessionRig& rig, uint64_t step) {
  // The input is a buffer of the pool, taken and given back in every step: the session must be the last holder of the
  // input, and a borrowed block would cost one allocation per piece.
  Buffer input = rig.pool.take(320);
  const MutableBytes output = input.bytes();
  rig.clear();
  ASSERT_TRUE(rig.session.start({.input = std::move(input), .output = output}, rig.now, rig.actions).ok());
  rig.reconnect(static_cast<uint32_t>(step % 4));
  for (uint32_t i = 0; i < 40; ++i) {
    rig.tick(kStall);
    if (i % 5 == 0) {
      ASSERT_TRUE(rig.defer({0, i, step}).ok());
      rig.tick(kStall);
    }
    ASSERT_TRUE(rig.result({0, i, step}).ok());
    ASSERT_TRUE(rig.result({0, i, step}).ok());
  }
  rig.tick();
  for (uint32_t owner = 0; owner < 4; ++owner) ASSERT_TRUE(rig.release(owner, 1).ok());
}

TEST(SessionAllocation, NoneOnceWarm) {
  std::vector<uint32_t> owners;
  for (uint32_t i = 0; i < 40; ++i) owners.push_back(i % 4);
  SessionRig rig({.workers = 2, .summers = 2, .tensors = {{.owners = owners}}}, 64);
  for (uint64_t step = 0; step < 3; ++step) run_step(rig, step);
  const Allocations before = allocations_so_far();
  for (uint64_t step = 3; step < 30; ++step) run_step(rig, step);
  EXPECT_EQ(allocations_so_far().count - before.count, 0u);
  EXPECT_EQ(rig.session.counters().results, 30u * 40);
}

}  // namespace
}  // namespace gleaner::testing
