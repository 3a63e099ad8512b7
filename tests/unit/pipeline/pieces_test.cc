// Tests of how stages cut tensors into pieces.
#include "comm-lib/pipeline/pieces.h"

#include <gtest/gtest.h>

#include "common/plan/partitioner.h"

namespace gleaner::pipeline {
namespace {

plan::Plan plan_of(const std::vector<plan::Tensor>& tensors, uint64_t partition_bytes) {
  const auto plan = plan::make_plan({{1e9, 1e9}, {1e9}}, tensors, {partition_bytes});
  EXPECT_TRUE(plan.ok()) << plan.status();
  return *plan;
}

// Checks that the pieces of a tensor contain its partitions in order, without a gap. Returns the number of pieces.
size_t check_tensor(const Pieces& pieces, const plan::Plan& plan, uint32_t tensor) {
  uint32_t partition = 0;
  uint64_t offset = 0;
  for (uint32_t i = 0; i < pieces.count_of(tensor); ++i) {
    const Piece& piece = pieces[pieces.first_of(tensor) + i];
    EXPECT_EQ(piece.tensor, tensor);
    EXPECT_EQ(piece.first, partition);
    EXPECT_EQ(piece.offset, offset);
    uint64_t bytes = 0;
    for (const auto& each : plan.partitions_of(tensor).subspan(piece.first, piece.count)) bytes += each.bytes;
    EXPECT_EQ(piece.bytes, bytes);
    if (i + 1 < pieces.count_of(tensor)) {
      EXPECT_GE(bytes, 1u << 20);
      EXPECT_LT(bytes, (1u << 20) + plan.partitions_of(tensor)[piece.first + piece.count - 1].bytes);
    }
    partition += piece.count;
    offset += piece.bytes;
  }
  EXPECT_EQ(partition, plan.partitions_of(tensor).size());
  EXPECT_EQ(offset, plan.tensors[tensor].bytes());
  return pieces.count_of(tensor);
}

TEST(Pieces, AreWholePartitionsOfAboutAMebibyte) {
  const plan::Plan plan = plan_of({{"large", 5 << 18}, {"small", 10}, {"empty", 0}, {"last", 1 << 20}}, 100'000);
  Pieces pieces;
  pieces.extend(plan);
  EXPECT_EQ(check_tensor(pieces, plan, 0), 5u);
  EXPECT_EQ(check_tensor(pieces, plan, 1), 1u);
  EXPECT_EQ(check_tensor(pieces, plan, 2), 1u) << "a tensor without bytes has one piece";
  EXPECT_EQ(check_tensor(pieces, plan, 3), 4u);
}

TEST(Pieces, CountTheMemoryOfCompressedTensors) {
  plan::Tensor tensor{"compressed", 1 << 19, DataType::kFloat16};
  tensor.memory = {DataType::kFloat32, tensor.elements};
  Pieces pieces;
  pieces.extend(plan_of({tensor}, 1 << 17));
  ASSERT_EQ(pieces.count_of(0), 2u);
  EXPECT_EQ(pieces[0].bytes, 1u << 20);
  EXPECT_EQ(pieces[1].offset, 1u << 20);
  EXPECT_EQ(pieces[1].bytes, 1u << 20);
}

TEST(Pieces, LaterTensorsGetLaterPieces) {
  const plan::Plan first = plan_of({{"a", 1 << 20}}, 1 << 20);
  Pieces pieces;
  EXPECT_EQ(pieces.extend(first).size(), 4u);
  const auto more = plan::extend_plan(first, {{"b", 1 << 19}}, {1 << 20}, 2);
  ASSERT_TRUE(more.ok()) << more.status();
  EXPECT_EQ(pieces.extend(*more).size(), 2u);
  EXPECT_EQ(pieces.first_of(1), 4u);
  EXPECT_EQ(check_tensor(pieces, *more, 0), 4u);
  EXPECT_EQ(check_tensor(pieces, *more, 1), 2u);
}

}  // namespace
}  // namespace gleaner::pipeline
