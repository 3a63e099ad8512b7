#include "common/collective/oracle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/collective/gather.h"
#include "common/collective/halving_doubling.h"
#include "common/collective/ring.h"
#include "common/collective/schedule_builder.h"
#include "common/kernels/float_formats.h"
#include "tests/unit/collective/counts.h"

namespace gleaner::collective {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Vectors = std::vector<std::vector<float>>;

// Ranks 1 and 2 send their vector of one chunk to rank 0, which adds them in this order.
Schedule reduce_to_first() {
  ScheduleBuilder builder("reduce", {3}, 1);
  builder.transfer(1, 0, {0, 1}, Take::kReduce);
  builder.transfer(2, 0, {0, 1}, Take::kReduce);
  builder.end_step();
  return builder.take();
}

template <typename T>
std::vector<std::byte> bytes_of(T value) {
  std::vector<std::byte> bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

// Returns the result of rank 0 after reduce_to_first() of one element for each rank.
template <typename To, typename From>
To gathered(const Reduction& reduction, From a, From b, From c) {
  const auto results = execute_all_reduce(reduce_to_first(), reduction, {bytes_of(a), bytes_of(b), bytes_of(c)});
  EXPECT_TRUE(results.ok()) << results.status();
  To result;
  EXPECT_EQ((*results)[0].size(), sizeof(result));
  std::memcpy(&result, (*results)[0].data(), sizeof(result));
  return result;
}

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
  const absl::StatusOr<Vectors> outputs = execute_all_reduce(schedule, inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  for (const std::vector<float>& output : *outputs) EXPECT_EQ(output, sum) << schedule.algorithm << schedule.ranks;
}

// 256 + 1 is a tie in bf16, so only fp32 sums in rank order, rounded once, give 264.
TEST(Oracle, GatherAddsInRankOrder) {
  std::vector<std::vector<std::byte>> inputs(8, bytes_of(kernels::float32_to_bfloat16(1)));
  inputs[0] = bytes_of(kernels::float32_to_bfloat16(256));
  const auto results = execute_all_reduce(gather(8), {DataType::kBFloat16, DataType::kBFloat16, 1}, inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  for (const auto& result : *results) EXPECT_EQ(result, bytes_of(kernels::float32_to_bfloat16(264)));
  // 2^30 comes and goes before the 1, which it would swallow.
  const absl::StatusOr<Vectors> sums = execute_all_reduce(gather(3), {{0x1p30f}, {-0x1p30f}, {1}});
  EXPECT_EQ(*sums, Vectors(3, {1}));
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
  const auto outputs = execute_all_reduce(ring(3), inputs);
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
    ScheduleBuilder builder("gather", {3}, 1);
    builder.transfer(first, 0, {0, 1}, Take::kReduce);
    builder.transfer(second, 0, {0, 1}, Take::kReduce);
    builder.end_step();
    return builder.take();
  };
  const Vectors inputs = {{1}, {1e8f}, {-1e8f}};
  EXPECT_EQ((*execute_all_reduce(gather(1, 2), inputs))[0][0], (1 + 1e8f) + -1e8f);
  const Vectors other = {{1}, {1e8f}, {3}};
  EXPECT_EQ((*execute_all_reduce(gather(1, 2), other))[0][0], (1 + 1e8f) + 3);
  EXPECT_EQ((*execute_all_reduce(gather(2, 1), other))[0][0], (1 + 3.0f) + 1e8f);
}

// In fp16, 2048 + 1 is 2048; in bf16, 256 + 1 is 256.
TEST(Oracle, RoundsCompleteSumsOnce) {
  const auto half = kernels::float32_to_float16;
  constexpr DataType kHalf = DataType::kFloat16;
  EXPECT_EQ((gathered<uint16_t>({kHalf, kHalf}, half(2048), half(1), half(1))), half(2050));
  EXPECT_EQ((gathered<uint16_t>({kHalf, kHalf, 2}, half(2048), half(1), half(2))), half(1025.5f));
  EXPECT_EQ((gathered<uint16_t>({kHalf, kHalf, 3}, half(30000), half(30000), half(30000))), half(30000));
  const auto brain = kernels::float32_to_bfloat16;
  constexpr DataType kBrain = DataType::kBFloat16;
  EXPECT_EQ((gathered<uint16_t>({kBrain, kBrain}, brain(256), brain(1), brain(1))), brain(258));
}

TEST(Oracle, RoundsPartialSumsOnce) {
  constexpr DataType kSingle = DataType::kFloat32;
  const auto half = kernels::float32_to_float16;
  EXPECT_EQ((gathered<uint16_t>({kSingle, DataType::kFloat16}, 2048.0f, 1.0f, 1.0f)), half(2050));
  const auto brain = kernels::float32_to_bfloat16;
  EXPECT_EQ((gathered<uint16_t>({kSingle, DataType::kBFloat16}, 256.0f, 1.0f, 1.0f)), brain(258));
  EXPECT_EQ((gathered<uint16_t>({kSingle, DataType::kFloat16, 3}, 2048.0f, 1.0f, 1.0f)), half(2050.0f / 3));
}

TEST(Oracle, WideTypes) {
  constexpr DataType kDouble = DataType::kFloat64, kInt = DataType::kInt32;
  EXPECT_EQ((gathered<double>({kDouble, kDouble, 3}, 1e16, 1.0, -1e16)), ((1e16 + 1.0) + -1e16) / 3);
  EXPECT_EQ((gathered<int32_t>({kInt, kInt}, INT32_MAX, 2, 0)), INT32_MIN + 1);
}

TEST(Oracle, CanonicalNan) {
  constexpr DataType kSingle = DataType::kFloat32, kHalf = DataType::kFloat16;
  EXPECT_EQ((gathered<uint32_t>({kSingle, kSingle}, 0xFFC00001u, 0u, 0u)), kernels::kNanFloat32);
  EXPECT_EQ((gathered<uint16_t, uint16_t>({kHalf, kHalf}, 0xFE01, 0, 0)), kernels::kNanFloat16);
  // Ranks 1 and 2 receive nothing.
  const auto results = execute_all_reduce(reduce_to_first(), {kSingle, kSingle},
                                          {bytes_of(0.0f), bytes_of(0xFFC00001u), bytes_of(0.0f)});
  EXPECT_EQ((*results)[1], bytes_of(kernels::kNanFloat32));
}

TEST(Oracle, ReductionsMustFit) {
  const auto message = [](const Reduction& reduction) {
    return std::string(execute_all_reduce(ring(1), reduction, {{}}).status().message());
  };
  EXPECT_THAT(message({DataType::kFloat16, DataType::kFloat32}), HasSubstr("of fp16 have no result of fp32"));
  EXPECT_THAT(message({DataType::kFloat64, DataType::kFloat32}), HasSubstr("of fp64 have no result of fp32"));
  EXPECT_THAT(message({DataType::kInt32, DataType::kInt32, 2}), HasSubstr("of int32 divided by 2"));
  EXPECT_THAT(message({DataType::kFloat32, DataType::kFloat32, 0}), HasSubstr("divided by 0"));
  EXPECT_EQ(message({DataType::kFloat32, DataType::kBFloat16, 2}), "");
}

TEST(Oracle, InputsMustFit) {
  const auto message = [](const Vectors& inputs) {
    return std::string(execute_all_reduce(ring(2), inputs).status().message());
  };
  EXPECT_THAT(message({{1}}), HasSubstr("1 inputs for 2 ranks"));
  EXPECT_THAT(message({{1}, {1, 2}}), HasSubstr("the input of rank 1 has 2 elements, that of rank 0 has 1"));
}

// In fp16, 2048 + 1 is 2048. A result that is not asked for is empty.
TEST(Oracle, ReduceRoundsOnceAtTheRoot) {
  const auto half = kernels::float32_to_float16;
  Schedule schedule = reduce_to_first();
  schedule.postcondition = Postcondition::kReduce;
  const Reduction reduction{DataType::kFloat16, DataType::kFloat16, 2};
  const auto results = execute(schedule, reduction, {bytes_of(half(2048)), bytes_of(half(1)), bytes_of(half(2))});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ((*results)[0], bytes_of(half(1025.5f)));
  EXPECT_THAT((*results)[1], IsEmpty());
}

// Blocks to which one rank contributes keep their bits: neither the divisor nor rounding changes them.
TEST(Oracle, CopiesKeepBits) {
  const std::vector<std::byte> nan = bytes_of(uint16_t{0xFE01});
  const auto results = execute(gather(2), {DataType::kFloat16, DataType::kFloat16, 3}, {nan, bytes_of(uint16_t{1})});
  ASSERT_TRUE(results.ok()) << results.status();
  for (const auto& result : *results) EXPECT_EQ(result, bytes_of(uint32_t{0x0001FE01}));
}

TEST(Oracle, InputsAreTheBlocksOfTheRank) {
  Schedule schedule = ring(2);
  const auto message = [&](const std::vector<std::vector<std::byte>>& inputs) {
    return std::string(execute(schedule, {}, inputs).status().message());
  };
  const std::vector<std::byte> one(4), two(8);
  schedule.postcondition = Postcondition::kReduceScatter;
  EXPECT_THAT(message({two, one}), HasSubstr("the input of rank 1 has 1 elements, that of rank 0 has 2; give 1 for "
                                             "each block: 2"));
  schedule.postcondition = Postcondition::kScatter;
  schedule.root = 1;
  EXPECT_THAT(message({one, two}), HasSubstr("the input of rank 0 has 1 elements, that of rank 1 has 2; give 1 for "
                                             "each block: 0"));
  EXPECT_THAT(std::string(execute_all_reduce(schedule, {}, {{}, two}).status().message()),
              HasSubstr("makes a scatter, which ranks do not add"));
}

TEST(Oracle, WaitsForEver) {
  Schedule schedule = ring(2);
  for (std::vector<Op>& program : schedule.programs) std::swap(program[0], program[1]);
  EXPECT_THAT(std::string(execute_all_reduce(schedule, {{1}, {2}}).status().message()), HasSubstr("waits for ever"));
}

}  // namespace
}  // namespace gleaner::collective
