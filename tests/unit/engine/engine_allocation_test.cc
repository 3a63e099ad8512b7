// Tests that frames cause no allocations after a warm-up, and that an engine for a large job needs little memory.
#include <gtest/gtest.h>

#include "common/base/block_size.h"
#include "tests/unit/engine/allocation_counter.h"
#include "tests/unit/engine/engine_rig.h"

namespace gleaner::testing {
namespace {

// Runs one step of every partition: every push is sent twice, and two of three workers acknowledge.
void run_step(EngineRig& rig, uint64_t step) {
  const auto partitions = static_cast<uint32_t>(rig.plan->partitions.size());
  for (uint32_t worker = 0; worker < 3; ++worker) {
    for (uint32_t i = 0; i < partitions; ++i) {
      wire::Header header = rig.header(wire::FrameType::kPush, worker, {.partition = i, .step = step});
      ASSERT_TRUE(rig.send(worker, header, rig.pool.take(8)).ok());
      ASSERT_TRUE(rig.send(worker, header, rig.pool.take(8)).ok());
    }
  }
  for (uint32_t worker = 0; worker < 2; ++worker) {
    Buffer keys = rig.pool.take(partitions * sizeof(wire::PartitionKey));
    for (uint32_t i = 0; i < partitions; ++i) {
      const wire::PartitionKey key{.step = step + 1, .tensor = 0, .partition = i};
      std::memcpy(keys.bytes().data() + i * sizeof(key), &key, sizeof(key));
    }
    ASSERT_TRUE(rig.send(worker, rig.header(wire::FrameType::kAck, worker, {}), std::move(keys)).ok());
  }
}

TEST(EngineAllocation, NoneOnceWarm) {
  const uint64_t cap = (4 * 4 + 4) * block_size(8);  // the most that four partitions need
  EngineRig rig({.workers = 3, .tensors = {{.owners = {3, 3, 3, 3}}}}, cap);
  ASSERT_TRUE(rig.take_plan().ok());
  run_step(rig, 0);
  run_step(rig, 1);
  const Allocations before = allocations_so_far();
  for (uint64_t step = 2; step < 50; ++step) run_step(rig, step);
  EXPECT_EQ(allocations_so_far().count - before.count, 0u);
  EXPECT_EQ(rig.engine.counters().sums, 200u);
}

TEST(EngineAllocation, RunningSumsCostNone) {
  EngineRig rig({.workers = 3, .tensors = {{.owners = {3, 3}, .accumulates = true, .staleness = 1}}});
  ASSERT_TRUE(rig.take_plan().ok());
  Allocations before;
  for (uint64_t step = 0; step < 50; ++step) {
    if (step == 2) before = allocations_so_far();
    for (uint32_t worker = 0; worker < 3; ++worker) {
      for (uint32_t i = 0; i < 2; ++i) {
        wire::Header header = rig.header(wire::FrameType::kPush, worker, {.partition = i, .step = step});
        header.op = ReduceOp::kAccumulate;
        ASSERT_TRUE(rig.send(worker, header, rig.pool.take(8)).ok());
        ASSERT_TRUE(rig.send(worker, header, rig.pool.take(8)).ok());
      }
    }
  }
  EXPECT_EQ(allocations_so_far().count - before.count, 0u);
  EXPECT_EQ(rig.engine.counters().sums, 300u);
}

TEST(EngineAllocation, LargeJobCostsLittle) {
  const std::vector<uint32_t> owners(100'000, 1024);
  const PlanSpec spec{.workers = 1024, .tensors = {{.owners = owners}}};
  EngineRig rig(spec);
  const Allocations before = allocations_so_far();
  ASSERT_TRUE(rig.take_plan().ok());
  EXPECT_LT(allocations_so_far().bytes - before.bytes, 4u << 20);
}

}  // namespace
}  // namespace gleaner::testing
