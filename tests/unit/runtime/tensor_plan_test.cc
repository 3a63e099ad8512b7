#include "comm-lib/runtime/tensor_plan.h"

#include <gtest/gtest.h>

namespace gleaner::runtime {
namespace {

TEST(TensorPlan, NamesTheStrategyAndTheCut) {
  plan::Plan plan;
  plan.workers = 2;
  plan.tensors = {{"w", 6}, {"v", 1}, {"empty", 0}};
  plan.schedules = {{"blueconnect", {2, 1}, 3, 4, {2}, {{1, 2}, {3, 4}}, {1, 0}}};
  plan.tensors[0].schedule = 0;
  plan.tensors[0].schedule_from = 12;
  plan.tensors[1].group = {1};
  plan.partitions = {{0, 0, 0, 16}, {0, 1, 16, 8}, {1, 0, 0, 4}};
  plan.first_partition = {0, 2, 3, 3};
  EXPECT_EQ(
      tensor_plan(plan, 0),
      R"({"algorithm": "blueconnect", "stages": [2, 1], "radix": 3, "blocks": 4, "ranks": [1, 0], "group_sizes": [2], "global_chunks": [1, 2], "local_chunks": [3, 4], "partition_bytes": [16, 8], "owners": [0, 1], "members": [], "from": 12})");
  EXPECT_EQ(
      tensor_plan(plan, 1),
      R"({"algorithm": "summers", "stages": [], "radix": 0, "blocks": 0, "ranks": [], "group_sizes": [], "global_chunks": [], "local_chunks": [], "partition_bytes": [4], "owners": [0], "members": [1], "from": 0})");
  EXPECT_EQ(
      tensor_plan(plan, 2),
      R"({"algorithm": "summers", "stages": [], "radix": 0, "blocks": 0, "ranks": [], "group_sizes": [], "global_chunks": [], "local_chunks": [], "partition_bytes": [], "owners": [], "members": [], "from": 0})");
}

}  // namespace
}  // namespace gleaner::runtime
