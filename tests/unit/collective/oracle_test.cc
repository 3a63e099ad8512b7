#include "common/collective/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/collective/halving_doubling.h"
#include "common/collective/ring.h"
#include "common/collective/schedule_builder.h"
#include "tests/unit/collective/counts.h"

namespace gleaner::collective {
namespace {

using ::testing::HasSubstr;
using Vectors = std::vector<std::vector<float>>;

// Integers are summed without rounding, in whatever order.
void expect_sums(const Schedule& schedule, size_t elements) {
  Vectors inputs(schedule.ranks);
  std::vector<float> sum(elements, 0);
  for (uint32_t rank = 0; rank < schedule.ranks; ++rank) {
    for (size_t i = 0; i < elements; ++i) {
      inputs[rank].push_back(static_cast<float>((rank * 31 + i * 7) % 101) - 50);
      sum[i] += inputs[rank][i];
    }
  }
  const absl::StatusOr<Vectors> outputs = execute(schedule, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  for (const std::vector<float>& output : *outputs) EXPECT_EQ(output, sum) << schedule.algorithm << schedule.ranks;
}

TEST(Oracle, SumsExactIntegers) {
  for (const uint32_t ranks : tested_counts()) {
    for (const size_t elements : {size_t{ranks} * 2 + 1, size_t{1}, size_t{0}}) {
      expect_sums(ring(ranks), elements);
      expect_sums(halving_doubling(ranks), elements);
    }
  }
}

// A ring sums a chunk along the ring, beginning at the chunk's own rank: each rank adds its own value to the sum of
// those before it.
TEST(Oracle, RingSumsAlongTheRing) {
  const Vectors inputs = {{1e8f, 1, 3}, {3, -1e8f, 1}, {-1e8f, 3, 1e8f}};
  const auto outputs = execute(ring(3), inputs);
  ASSERT_TRUE(outputs.ok());
  for (const std::vector<float>& output : *outputs) {
    for (size_t chunk = 0; chunk < 3; ++chunk) {
      const float first = inputs[chunk][chunk], second = inputs[(chunk + 1) % 3][chunk];
      const float third = inputs[(chunk + 2) % 3][chunk];
      EXPECT_EQ(output[chunk], third + (second + first)) << chunk;
    }
  }
}

// The result is the same if the programs list independent receives of other ranks in another order of ranks, and
// differs if a rank's own receives are in another order.
TEST(Oracle, OrderFollowsPrograms) {
  const auto gather = [](uint32_t first, uint32_t second) {
    ScheduleBuilder builder("gather", 3, 1);
    builder.transfer(first, 0, {0, 1}, OpKind::kReceiveReduce);
    builder.transfer(second, 0, {0, 1}, OpKind::kReceiveReduce);
    builder.end_step();
    return builder.take();
  };
  const Vectors inputs = {{1}, {1e8f}, {-1e8f}};
  EXPECT_EQ((*execute(gather(1, 2), inputs))[0][0], (1 + 1e8f) + -1e8f);
  const Vectors other = {{1}, {1e8f}, {3}};
  EXPECT_EQ((*execute(gather(1, 2), other))[0][0], (1 + 1e8f) + 3);
  EXPECT_EQ((*execute(gather(2, 1), other))[0][0], (1 + 3.0f) + 1e8f);
}

TEST(Oracle, InputsMustFit) {
  const auto message = [](const Vectors& inputs) { return std::string(execute(ring(2), inputs).status().message()); };
  EXPECT_THAT(message({{1}}), HasSubstr("1 inputs for 2 ranks"));
  EXPECT_THAT(message({{1}, {1, 2}}), HasSubstr("the input of rank 1 has 2 elements, that of rank 0 has 1"));
}

TEST(Oracle, WaitsForEver) {
  Schedule schedule = ring(2);
  for (std::vector<Op>& program : schedule.programs) std::swap(program[0], program[1]);
  EXPECT_THAT(std::string(execute(schedule, {{1}, {2}}).status().message()), HasSubstr("waits for ever"));
}

}  // namespace
}  // namespace gleaner::collective
