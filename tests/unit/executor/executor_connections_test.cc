// Tests of what is sent when, of confirmations, and of repeats over new connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/executor/worker_group.h"

namespace gleaner::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using wire::FrameType;

// Two workers, and one tensor of two partitions with 4 values each; a slice has 8 bytes.
const ScheduledPlan kPair{.workers = 2, .tensors = {{.elements = 8, .partitions = 2}}};

std::vector<uint32_t> tensors_of(const std::deque<exchange::Send>& frames) {
  std::vector<uint32_t> tensors;
  for (const exchange::Send& frame : frames) tensors.push_back(frame.header.tensor);
  return tensors;
}

TEST(ExecutorConnections, SendsFromTheWorkBuffer) {
  WorkerGroup group(kPair);
  ASSERT_TRUE(group.start(0, 0, ReduceOp::kAverage).ok());
  ASSERT_THAT(group.inbox(1), SizeIs(2));
  for (uint32_t i = 0; i < 2; ++i) {
    const wire::Header& header = group.inbox(1)[i].header;
    EXPECT_EQ(header.type, FrameType::kSlice);
    EXPECT_EQ(header.data_type, DataType::kFloat32);
    EXPECT_EQ(header.op, ReduceOp::kAverage);
    EXPECT_EQ(header.job, kJob);
    EXPECT_EQ(header.epoch, 1u);
    EXPECT_EQ(header.sender, 0u);
    EXPECT_EQ(header.tensor, 0u);
    EXPECT_EQ(header.partition, i);
    EXPECT_EQ(header.step, 0u);
    EXPECT_EQ(header.sequence, i);
    EXPECT_EQ(header.confirmed, 0u);
    EXPECT_EQ(header.payload_bytes, 8u);
    EXPECT_THAT(group.inbox(1)[i].payload.bytes(), SizeIs(8));
  }
}

TEST(ExecutorConnections, RepeatsWhatIsNotConfirmed) {
  WorkerGroup group(kPair);
  group.fill(0, 0, 3);
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.deliver_next(1).ok());
  const exchange::Send lost = group.take_next(1);
  group[0].on_disconnected(1);
  group.connect(0, 1);
  ASSERT_THAT(group.inbox(1), SizeIs(2)) << "worker 1 has confirmed none";
  const exchange::Send& again = group.inbox(1)[1];
  EXPECT_EQ(again.header.sequence, 1u);
  EXPECT_NE(again.payload.bytes().data(), lost.payload.bytes().data()) << "the work buffer may change";
  EXPECT_TRUE(std::ranges::equal(again.payload.bytes(), lost.payload.bytes()));
  group.tick(1);
  ASSERT_TRUE(group.deliver_next(0).ok());
  group.inbox(1).clear();
  group.connect(0, 1);
  ASSERT_THAT(group.inbox(1), SizeIs(1)) << "worker 1 has confirmed the first";
  EXPECT_EQ(group.inbox(1)[0].header.sequence, 1u);
  EXPECT_EQ(group[0].counters().repeated_slices, 3u);
  EXPECT_EQ(group[0].counters().slice_bytes, 5u * 8);
  ASSERT_TRUE(group.start(1).ok());
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_THAT(group.values(0), Each(3.0f));
  EXPECT_THAT(group.values(1), Each(3.0f));
}

TEST(ExecutorConnections, IgnoresRepeats) {
  WorkerGroup group(kPair);
  group.fill(0, 0, 1);
  group.fill(1, 0, 10);
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.start(1).ok());
  const exchange::Send first = group.inbox(1)[0];
  ASSERT_TRUE(group.deliver_next(1).ok());
  ASSERT_TRUE(group.deliver(1, first).ok());
  EXPECT_EQ(group[1].counters().duplicate_slices, 1u);
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_THAT(group.values(0), Each(11.0f));
  EXPECT_THAT(group.values(1), Each(11.0f));
  ASSERT_TRUE(group.deliver(1, first).ok());
  EXPECT_FALSE(group[1].idle()) << "worker 0 seems to lack the confirmation";
  group.tick(1);
  ASSERT_THAT(group.inbox(0), SizeIs(1));
  EXPECT_EQ(group.inbox(0)[0].header.type, FrameType::kArrived);
  EXPECT_EQ(group.inbox(0)[0].header.confirmed, 4u);
}

TEST(ExecutorConnections, NewConnectionConfirms) {
  WorkerGroup group(kPair);
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.deliver_next(1).ok());
  ASSERT_TRUE(group.deliver_next(1).ok());
  group[1].on_disconnected(0);
  group.tick(1);
  EXPECT_THAT(group.inbox(0), IsEmpty());
  EXPECT_FALSE(group[1].idle());
  group.connect(1, 0);
  ASSERT_THAT(group.inbox(0), SizeIs(1));
  EXPECT_EQ(group.inbox(0)[0].header.confirmed, 2u);
  EXPECT_TRUE(group[1].idle());
}

// Frames that the caller has not sent yet would come before earlier slices.
TEST(ExecutorConnections, RemovesUnsentFramesOfTheLastConnection) {
  WorkerGroup group(kPair);
  std::vector<std::byte> memory(32);
  ASSERT_TRUE(group[0]
                  .start({.input = Buffer::borrow(memory), .output = memory, .schedule = 0}, group.now, group.actions)
                  .ok());
  ASSERT_THAT(group.actions.sends, SizeIs(2));
  group[0].on_disconnected(1);
  group.connect(0, 1);
  ASSERT_THAT(group.inbox(1), SizeIs(2));
  EXPECT_EQ(group.inbox(1)[0].header.sequence, 0u);
}

TEST(ExecutorConnections, SlicesConfirm) {
  WorkerGroup group(kPair);
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.deliver_next(1).ok());
  ASSERT_TRUE(group.start(1).ok());
  EXPECT_EQ(group.inbox(0)[0].header.confirmed, 1u);
  EXPECT_EQ(group.inbox(0)[0].header.type, FrameType::kSlice);
}

TEST(ExecutorConnections, ManySlicesAreConfirmedAtOnce) {
  WorkerGroup group({.workers = 2, .tensors = {{.elements = 128, .partitions = 64}}});
  ASSERT_TRUE(group.start(0).ok());
  for (uint32_t i = 0; i < executor::Peers::kMostOwedSlices; ++i) {
    EXPECT_THAT(group.inbox(0), IsEmpty());
    ASSERT_TRUE(group.deliver_next(1).ok());
  }
  ASSERT_THAT(group.inbox(0), SizeIs(1));
  EXPECT_EQ(group.inbox(0)[0].header.type, FrameType::kArrived);
  EXPECT_EQ(group.inbox(0)[0].header.confirmed, executor::Peers::kMostOwedSlices);
}

TEST(ExecutorConnections, ManyBytesAreConfirmedAtOnce) {
  WorkerGroup group({.workers = 2, .tensors = {{.elements = 1 << 16, .partitions = 1}}});
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.deliver_next(1).ok());
  ASSERT_THAT(group.inbox(0), SizeIs(1)) << "128 KiB are an eighth of the window";
  EXPECT_EQ(group.inbox(0)[0].header.type, FrameType::kArrived);
}

// The window has room for two slices with their headers. t1 becomes ready late, and is more urgent than t0.
TEST(ExecutorConnections, UrgentSlicesOvertake) {
  WorkerGroup group({.workers = 2, .tensors = {{.elements = 20, .partitions = 5, .priority = 5}, {.elements = 4}}},
                    2 * (8 + wire::kHeaderBytes));
  ASSERT_TRUE(group.start(0, 0).ok());
  EXPECT_THAT(tensors_of(group.inbox(1)), ElementsAre(0, 0));
  ASSERT_TRUE(group.start(0, 1).ok());
  EXPECT_EQ(group[0].counters().unconfirmed_bytes, group[0].counters().window_bytes);
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(group.deliver_next(1).ok());
    group.tick(1);
  }
  while (!group.inbox(0).empty()) ASSERT_TRUE(group.deliver_next(0).ok());
  EXPECT_THAT(tensors_of(group.inbox(1)), ElementsAre(1, 0));
}

TEST(ExecutorConnections, SliceMayExceedTheWindow) {
  WorkerGroup group(kPair, 1);
  group.fill(0, 0, 1);
  group.fill(1, 0, 2);
  ASSERT_TRUE(group.start(0).ok());
  EXPECT_THAT(group.inbox(1), SizeIs(1));
  ASSERT_TRUE(group.start(1).ok());
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_THAT(group.values(1), Each(3.0f));
}

TEST(ExecutorConnections, KeepsWorkBuffersUntilConfirmed) {
  WorkerGroup group(kPair);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(group.start(i).ok());
  ASSERT_TRUE(group.deliver_queued().ok());
  EXPECT_THAT(group.take_done(), SizeIs(2));
  EXPECT_GT(group.pool.bytes_in_use(), 0u);
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_EQ(group.pool.bytes_in_use(), 0u);
}

TEST(ExecutorWaiting, NamesALostPeer) {
  WorkerGroup group({.workers = 4, .tensors = {{.elements = 8}}});
  const std::vector<uint32_t> others = {0, 1, 3};
  for (const uint32_t worker : others) ASSERT_TRUE(group.start(worker).ok());
  group.now += absl::Seconds(1);
  for (uint32_t round = 0; round < 10; ++round) {
    for (const uint32_t worker : others) {
      group.tick(worker);
      while (!group.inbox(worker).empty()) ASSERT_TRUE(group.deliver_next(worker).ok());
    }
  }
  EXPECT_THAT(group[3].waiting_for(), ElementsAre(2)) << "worker 3 waits for the slice of worker 2";
  EXPECT_THAT(group[1].waiting_for(), ElementsAre(2, 0)) << "worker 2 has confirmed nothing";
  group[1].on_disconnected(2);
  EXPECT_THAT(group[1].waiting_for(), ElementsAre(2, 0));
}

TEST(ExecutorWaiting, LongestSilentFirst) {
  WorkerGroup group({.workers = 3, .schedules = {{.algorithm = "bcube"}}, .tensors = {{.elements = 9}}});
  EXPECT_THAT(group[0].waiting_for(), IsEmpty());
  ASSERT_TRUE(group.start(0).ok());
  EXPECT_THAT(group[0].waiting_for(), ElementsAre(1, 2)) << "neither has confirmed a slice";
  group.now += absl::Seconds(1);
  ASSERT_TRUE(group.deliver_next(2).ok());
  group.tick(2);
  ASSERT_TRUE(group.deliver_next(0).ok());
  EXPECT_THAT(group[0].waiting_for(), ElementsAre(1, 2)) << "a run waits for worker 2, which was heard from last";
}

TEST(ExecutorWaiting, NamesAPeerThatNeverConnected) {
  WorkerGroup group(kPair, 1 << 20, false);
  ASSERT_TRUE(group.start(0).ok());
  EXPECT_THAT(group.inbox(1), IsEmpty());
  EXPECT_THAT(group[0].waiting_for(), ElementsAre(1));
}

TEST(ExecutorEnding, DoesNotWaitForPeersThatHaveLeft) {
  WorkerGroup group(kPair);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(group.start(i).ok());
  ASSERT_TRUE(group.deliver_queued().ok());
  group[0].on_disconnected(1);
  EXPECT_FALSE(group[0].idle());
  group[0].set_ending(std::vector<uint32_t>{1});
  EXPECT_TRUE(group[0].idle());
}

// Another worker has left, and this worker's connection to a peer is down. The peer still lacks a slice.
TEST(ExecutorEnding, WaitsForAPeerWithoutAConnection) {
  WorkerGroup group({.workers = 3, .tensors = {{.elements = 3}}});
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(group.start(i).ok());
  ASSERT_TRUE(group.deliver_queued().ok());
  group[0].on_disconnected(1);
  group[0].set_ending(std::vector<uint32_t>{2});
  EXPECT_FALSE(group[0].idle());
}

// Its peers lack confirmations, or slices of this worker; they wait for it, not it for them.
TEST(ExecutorWaiting, NamesNobodyWithoutAPiece) {
  WorkerGroup group(kPair);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(group.start(i).ok());
  ASSERT_TRUE(group.deliver_queued().ok());
  EXPECT_THAT(group.take_done(), SizeIs(2));
  EXPECT_FALSE(group[0].idle());
  EXPECT_THAT(group[0].waiting_for(), IsEmpty());
}

}  // namespace
}  // namespace gleaner::testing
