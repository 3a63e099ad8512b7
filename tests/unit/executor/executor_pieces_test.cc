// Tests of pieces from their start to their end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/status_codes.h"
#include "tests/unit/executor/worker_group.h"

namespace gleaner::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(ExecutorPieces, SumsAndAverages) {
  WorkerGroup group({.workers = 3, .tensors = {{.elements = 7, .partitions = 2}}});
  for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAverage}) {
    for (uint32_t i = 0; i < 3; ++i) {
      group.fill(i, 0, static_cast<float>(i + 1));
      ASSERT_TRUE(group.start(i, 0, op).ok());
    }
    EXPECT_THAT(group.take_done(), IsEmpty());
    ASSERT_TRUE(group.deliver_all().ok());
    EXPECT_THAT(group.take_done(), ElementsAre(100, 100, 100));
    for (uint32_t i = 0; i < 3; ++i) EXPECT_THAT(group.values(i), Each(op == ReduceOp::kSum ? 6.0f : 2.0f));
    EXPECT_TRUE(group.idle());
  }
  EXPECT_EQ(group[0].step(0, 1), 2u);
  EXPECT_EQ(group[0].counters().results, 4u);
  EXPECT_EQ(group[0].counters().unconfirmed_bytes, 0u);
}

TEST(ExecutorPieces, DoneBeforeItsSlicesAreConfirmed) {
  WorkerGroup group({.workers = 2});
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.start(1).ok());
  ASSERT_TRUE(group.deliver_next(1).ok());
  ASSERT_TRUE(group.deliver_next(0).ok());
  ASSERT_TRUE(group.deliver_next(0).ok());
  EXPECT_THAT(group.take_done(), ElementsAre(100)) << "worker 0 has the sum";
  EXPECT_FALSE(group[0].idle()) << "worker 1 has not confirmed the last slice";
  EXPECT_EQ(group[0].counters().unconfirmed_bytes, 16u + wire::kHeaderBytes);
  ASSERT_TRUE(group.deliver_next(1).ok());
  EXPECT_THAT(group.take_done(), ElementsAre(100));
  EXPECT_FALSE(group[1].idle()) << "worker 1 owes a confirmation";
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_TRUE(group.idle());
}

TEST(ExecutorPieces, ZeroBytesAreDoneAtOnce) {
  WorkerGroup group({.workers = 3, .tensors = {{.elements = 0}}});
  ASSERT_TRUE(group.start(0).ok());
  EXPECT_THAT(group.take_done(), ElementsAre(100));
  EXPECT_TRUE(group[0].idle());
}

TEST(ExecutorPieces, OneWorkerIsDoneAtOnce) {
  WorkerGroup group({.workers = 1, .local_ranks = 4, .tensors = {{.elements = 3}}});
  group.fill(0, 0, 6);
  ASSERT_TRUE(group.start(0, 0, ReduceOp::kAverage).ok());
  EXPECT_THAT(group.take_done(), ElementsAre(100));
  EXPECT_THAT(group.values(0), ElementsAre(1.5f, 1.5f, 1.5f)) << "the average over 4 ranks";
  EXPECT_TRUE(group[0].idle());
}

// Worker 1 has the first slice of each step before it begins the step.
TEST(ExecutorPieces, EarlySlicesWait) {
  WorkerGroup group({.workers = 2});
  for (float step = 1; step <= 3; ++step) {
    group.fill(0, 0, step);
    group.fill(1, 0, 10 * step);
    ASSERT_TRUE(group.start(0).ok());
    ASSERT_TRUE(group.deliver_next(1).ok());
    EXPECT_THAT(group.take_done(), IsEmpty());
    ASSERT_TRUE(group.start(1).ok());
    ASSERT_TRUE(group.deliver_all().ok());
    EXPECT_THAT(group.take_done(), ElementsAre(100, 100));
    EXPECT_THAT(group.values(0), Each(11 * step));
    EXPECT_THAT(group.values(1), Each(11 * step));
  }
}

// The limit holds one partition of 16 bytes, so a worker begins the next one when the first has ended.
TEST(ExecutorPieces, PartitionsBeyondTheLimitWait) {
  WorkerGroup group({.workers = 2, .tensors = {{.elements = 12, .partitions = 3}}}, 16);
  group.fill(0, 0, 1);
  group.fill(1, 0, 10);
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.start(1).ok());
  EXPECT_EQ(group.inbox(0).size(), 1u);
  EXPECT_EQ(group.inbox(1).size(), 1u);
  EXPECT_EQ(group.start(0).code(), kWrongTime) << "waiting partitions are in flight, too";
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_THAT(group.take_done(), ElementsAre(100, 100));
  EXPECT_THAT(group.values(0), Each(11.0f));
  EXPECT_THAT(group.values(1), Each(11.0f));
}

// Each worker fills its limit with a tensor that the other has not begun. A slice of the other tensor arrives.
TEST(ExecutorPieces, OppositeOrdersEnd) {
  WorkerGroup group({.workers = 2, .tensors = {{.elements = 12, .partitions = 3}, {.elements = 12, .partitions = 3}}},
                    16);
  for (uint32_t worker = 0; worker < 2; ++worker) {
    for (uint32_t tensor = 0; tensor < 2; ++tensor) group.fill(worker, tensor, 1);
    ASSERT_TRUE(group.start(worker, worker).ok());
    ASSERT_TRUE(group.start(worker, 1 - worker).ok());
  }
  ASSERT_TRUE(group.deliver_queued().ok()) << "without a tick";
  EXPECT_THAT(group.take_done(), UnorderedElementsAre(100, 100, 101, 101));
  for (uint32_t tensor = 0; tensor < 2; ++tensor) EXPECT_THAT(group.values(0, tensor), Each(2.0f));
}

// Rank 0 of racks first waits for the contribution of rank 1. Rank maps let worker 0 wait in tensor 0, and worker 1 in
// tensor 1. Each fills its limit with the tensor in which it waits, so no slice leaves before a kAwait arrives.
TEST(ExecutorPieces, WaitingWorkersAskTheirPeers) {
  WorkerGroup group({.workers = 2,
                     .schedules = {{.algorithm = "racks", .factors = {1, 2}},
                                   {.algorithm = "racks", .factors = {1, 2}, .rank_of = {1, 0}}},
                     .tensors = {{.elements = 4}, {.elements = 4, .schedule = 1}}},
                    16);
  for (uint32_t worker = 0; worker < 2; ++worker) {
    for (uint32_t tensor = 0; tensor < 2; ++tensor) group.fill(worker, tensor, 1);
    ASSERT_TRUE(group.start(worker, worker).ok());
    ASSERT_TRUE(group.start(worker, 1 - worker).ok());
  }
  group.tick(0);
  EXPECT_TRUE(group.inbox(1).empty()) << "the slice may be on its way";
  group.tick(0);
  ASSERT_EQ(group.inbox(1).size(), 1u);
  EXPECT_EQ(group.inbox(1)[0].header.type, wire::FrameType::kAwait);
  group.tick(0);
  ASSERT_EQ(group.inbox(1).size(), 1u) << "one question is enough";
  group.connect(0, 1);
  group.inbox(1).clear();  // the question is lost with the last connection
  group.tick(0);
  group.tick(0);
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_THAT(group.take_done(), UnorderedElementsAre(100, 100, 101, 101));
  for (uint32_t tensor = 0; tensor < 2; ++tensor) EXPECT_THAT(group.values(0, tensor), Each(2.0f));
}

TEST(ExecutorPieces, KeepsTheQuestionUntilItsOwnStart) {
  WorkerGroup group({.workers = 2, .schedules = {{.algorithm = "racks", .factors = {1, 2}}}}, 16);
  group.fill(0, 0, 1);
  group.fill(1, 0, 2);
  ASSERT_TRUE(group.start(0).ok());
  group.tick(0);
  group.tick(0);
  ASSERT_TRUE(group.deliver_next(1).ok());
  EXPECT_EQ(group.start(1, 0, ReduceOp::kAverage).code(), absl::StatusCode::kInvalidArgument) << "another op";
  group.actions.refused = absl::OkStatus();
  ASSERT_TRUE(group.start(1).ok());
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_THAT(group.values(1), Each(3.0f));
}

TEST(ExecutorPieces, FailureEndsWaitingPartitions) {
  WorkerGroup group({.workers = 2, .tensors = {{.elements = 12, .partitions = 3}}}, 16);
  ASSERT_TRUE(group.start(0).ok());
  group[0].fail(absl::UnavailableError("worker/1 is lost"), group.actions);
  EXPECT_THAT(group.take_done(), ElementsAre(100));
  group.tick(0);
  EXPECT_EQ(group.inbox(1).size(), 1u) << "no waiting partition begins";
}

TEST(ExecutorPieces, PeerIsOneStepAhead) {
  WorkerGroup group({.workers = 2});
  group.fill(0, 0, 1);
  group.fill(1, 0, 10);
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.start(1).ok());
  ASSERT_TRUE(group.deliver_next(1).ok());
  ASSERT_TRUE(group.deliver_next(0).ok());
  ASSERT_TRUE(group.deliver_next(0).ok());
  ASSERT_THAT(group.values(0), Each(11.0f));
  ASSERT_TRUE(group.start(0).ok()) << "step 1, with the contribution 11";
  ASSERT_EQ(group.inbox(1).size(), 2u) << "the last slice of step 0, and the first of step 1";
  exchange::Send last = group.take_next(1), next = group.take_next(1);
  EXPECT_EQ(next.header.step, 1u);
  ASSERT_TRUE(group.deliver(1, last).ok());
  EXPECT_THAT(group.values(1), Each(11.0f));
  ASSERT_TRUE(group.deliver(1, next).ok());
  group.fill(1, 0, 20);
  ASSERT_TRUE(group.start(1).ok());
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_THAT(group.values(0), Each(31.0f));
  EXPECT_THAT(group.values(1), Each(31.0f));
}

TEST(ExecutorPieces, InvalidPieces) {
  WorkerGroup group({.workers = 2, .tensors = {{.elements = 4}, {.schedule = std::nullopt}}});
  std::vector<std::byte> memory(64);
  const auto start = [&](uint32_t tensor, size_t input, size_t output) {
    return group[0].start({.tensor = tensor,
                           .input = Buffer::borrow(std::span(memory).first(input)),
                           .output = std::span(memory).last(output),
                           .schedule = group.plan->tensors[tensor].schedule},
                          group.now, group.actions);
  };
  EXPECT_EQ(start(0, 8, 16).code(), kInvalid);
  EXPECT_THAT(std::string(start(1, 32, 32).message()), HasSubstr("tensor t1 has no schedule"));
  ASSERT_TRUE(start(0, 16, 16).ok());
  EXPECT_EQ(start(0, 16, 16).code(), kWrongTime);
  executor::Executor fresh({.job = kJob}, &group.pool, &group.kernels);
  EXPECT_EQ(fresh.start({}, group.now, group.actions).code(), kWrongTime) << "there is no plan";
}

TEST(ExecutorPieces, FailureEndsAllPieces) {
  WorkerGroup group({.workers = 2, .tensors = {{}, {}}});
  ASSERT_TRUE(group.start(0, 0).ok());
  ASSERT_TRUE(group.start(0, 1).ok());
  ASSERT_TRUE(group.start(1, 0).ok());
  const exchange::Send frame = group.take_next(0);
  group[0].fail(absl::UnavailableError("worker/1 is lost"), group.actions);
  ASSERT_EQ(group.actions.done.size(), 2u);
  for (const exchange::Done& done : group.actions.done) EXPECT_TRUE(absl::IsUnavailable(done.status));
  EXPECT_THAT(group.take_done(), UnorderedElementsAre(100, 101));
  EXPECT_TRUE(group[0].idle());
  EXPECT_THAT(group[0].waiting_for(), IsEmpty());
  EXPECT_TRUE(group.deliver(0, frame).ok()) << "later frames are ignored";
  ASSERT_TRUE(group.start(0, 0).ok());
  EXPECT_TRUE(absl::IsUnavailable(group.actions.done.at(0).status)) << "later pieces end, too";
}

}  // namespace
}  // namespace gleaner::testing
