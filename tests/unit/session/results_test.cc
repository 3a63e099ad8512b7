#include "comm-lib/session/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "tests/unit/engine/plans.h"

namespace gleaner::testing {
namespace {

using ::testing::Each;
using wire::FrameType;
using wire::PartitionKey;

// Partition 0 belongs to tensor 0; partition 1 accumulates, and belongs to tensor 1. Summer 2 owns both, and later
// worker 0.
const PlanSpec kBeforeOwnerChange{.tensors = {{.owners = {2}}, {.owners = {2}, .accumulates = true}}};
const PlanSpec kAfterOwnerChange{
    .epoch = 2, .tensors = {{.owners = {0}, .moved = 2}, {.owners = {0}, .moved = 2, .accumulates = true}}};

// The results of worker 1 of two.
class ResultsTest : public ::testing::Test {
 protected:
  ResultsTest() { results_.apply(build_plan(kBeforeOwnerChange)); }
  static wire::Header header(FrameType type, uint32_t tensor, uint64_t step, uint32_t epoch = 1) {
    wire::Header header;
    header.type = type;
    header.epoch = epoch;
    header.sender = 2;
    header.tensor = tensor;
    header.step = step;
    return header;
  }
  // Takes a result of partition 0, which has this number.
  void take(uint32_t number) {
    Buffer result = pool_.take(8);
    std::ranges::fill(result.bytes(), std::byte{0x11});
    wire::Header what = header(FrameType::kResult, 0, results_.step(0));
    what.sequence = number;
    what.op = ReduceOp::kAverage;
    results_.take(0, what, std::move(result));
  }
  // Returns an answer of partition 1 with the counts of both workers.
  Buffer answer(uint64_t first, uint64_t second) {
    Buffer answer = pool_.take(24);
    const std::array<uint64_t, 3> values = {0, first, second};
    std::memcpy(answer.bytes().data(), values.data(), 24);
    return answer;
  }
  // Delivers a kRelease of results below `below`, and of `keys`.
  absl::Status release(uint32_t owner, uint32_t below, const std::vector<PartitionKey>& keys, uint32_t epoch) {
    wire::Header what = header(FrameType::kRelease, 0, 0, epoch);
    what.confirmed = below;
    Buffer payload = pool_.take(keys.size() * sizeof(PartitionKey));
    if (!keys.empty()) std::memcpy(payload.bytes().data(), keys.data(), payload.size());
    what.payload_bytes = static_cast<uint32_t>(payload.size());
    return results_.on_release(owner, what, payload);
  }
  auto ask(uint32_t owner) const { return results_.ask_for_release(owner, owned_); }

  BufferPool pool_;
  session::Results results_{{.job = 7, .worker = 1}, &pool_};
  const std::array<uint32_t, 2> owned_ = {0, 1};
};

TEST_F(ResultsTest, EachResultEndsAStep) {
  EXPECT_EQ(results_.step(0), 0u);
  take(10);
  EXPECT_EQ(results_.step(0), 1u);
  EXPECT_EQ(results_.progress(0), (PartitionKey{1, 0, 0}));
  take(11);
  EXPECT_EQ(results_.step(0), 2u);
  EXPECT_EQ(results_.bytes(), 8u) << "only the last result is kept";
}

TEST_F(ResultsTest, AccumulatedProgressIsTheVersion) {
  const Buffer first = answer(5, 1);
  ASSERT_TRUE(results_.check(1, header(FrameType::kResult, 1, 0), first).ok());
  EXPECT_FALSE(results_.check(1, header(FrameType::kResult, 1, 1), first).ok()) << "an answer to another push";
  results_.take(1, header(FrameType::kResult, 1, 0), first);
  EXPECT_EQ(results_.step(1), 1u);
  EXPECT_EQ(results_.progress(1), (PartitionKey{6, 1, 0}));
  EXPECT_EQ(results_.needed_by_others(), 0u);
}

TEST_F(ResultsTest, HandsOnTheLastResult) {
  take(10);
  results_.apply(build_plan(kAfterOwnerChange));
  const auto handed = results_.hand_on(0, 0, header(FrameType::kFetch, 0, 0, 2));
  ASSERT_TRUE(handed.has_value());
  EXPECT_EQ(handed->member, 0u);
  EXPECT_EQ(handed->header.type, FrameType::kHand);
  EXPECT_EQ(handed->header.op, ReduceOp::kAverage);
  EXPECT_EQ(handed->header.epoch, 2u);
  EXPECT_THAT(handed->payload.bytes(), Each(std::byte{0x11}));
  EXPECT_FALSE(results_.hand_on(0, 0, header(FrameType::kFetch, 0, 1, 2)).has_value()) << "the step has no result";
}

TEST_F(ResultsTest, HandsOnTheLastAnswer) {
  results_.take(1, header(FrameType::kResult, 1, 0), answer(5, 1));
  results_.apply(build_plan(kAfterOwnerChange));
  const auto handed = results_.hand_on(0, 1, header(FrameType::kFetch, 1, 6, 2));
  ASSERT_TRUE(handed.has_value());
  EXPECT_EQ(handed->header.op, ReduceOp::kAccumulate);
  EXPECT_EQ(handed->payload.size(), 24u);
  EXPECT_FALSE(results_.hand_on(0, 1, header(FrameType::kFetch, 1, 5, 2)).has_value()) << "another version";
}

TEST_F(ResultsTest, ReleasesByNumber) {
  take(10);
  wire::Header later = header(FrameType::kResult, 0, 1);
  later.confirmed = 10;
  results_.release(2, later);
  EXPECT_EQ(results_.bytes(), 8u);
  later.confirmed = 11;
  later.epoch = 2;
  results_.release(2, later);
  EXPECT_EQ(results_.bytes(), 8u) << "the owner follows a plan that is not here yet";
  later.epoch = 1;
  results_.release(2, later);
  EXPECT_EQ(results_.bytes(), 0u);
}

TEST_F(ResultsTest, ReleasesMovedResultsByKey) {
  take(10);
  results_.apply(build_plan(kAfterOwnerChange));
  ASSERT_TRUE(release(0, 100, {{2, 0, 0}}, 2).ok());
  EXPECT_EQ(results_.bytes(), 8u) << "the key names another step";
  ASSERT_TRUE(release(0, 0, {{1, 0, 0}}, 1).ok());
  EXPECT_EQ(results_.bytes(), 8u) << "the frame belongs to an earlier plan";
  EXPECT_TRUE(absl::IsInvalidArgument(release(0, 0, {{1, 2, 0}}, 2))) << "the plan has no such tensor";
  ASSERT_TRUE(release(0, 0, {{1, 0, 0}}, 2).ok());
  EXPECT_EQ(results_.bytes(), 0u);
}

TEST_F(ResultsTest, AsksWhileResultsAreNeeded) {
  EXPECT_FALSE(ask(2).has_value());
  take(10);
  ASSERT_TRUE(ask(2).has_value());
  EXPECT_TRUE(ask(2)->payload.empty()) << "the owner knows the numbers of its results";
  results_.apply(build_plan(kAfterOwnerChange));
  const auto question = ask(0);
  ASSERT_TRUE(question.has_value());
  EXPECT_EQ(question->header.type, FrameType::kRelease);
  PartitionKey key;
  ASSERT_EQ(question->payload.size(), sizeof(key));
  std::memcpy(&key, question->payload.bytes().data(), sizeof(key));
  EXPECT_EQ(key, (PartitionKey{1, 0, 0}));
}

}  // namespace
}  // namespace gleaner::testing
