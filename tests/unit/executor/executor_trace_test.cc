// Tests that a trace has the life of each partition that a schedule sums, and each of its slices once at both ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>

#include "tests/unit/executor/worker_group.h"

namespace gleaner::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using trace::Event;
using trace::Kind;

constexpr uint32_t kWorkers = 3;

// Schedule 1 sums two partitions of 6 elements each.
ScheduledPlan two_partitions() {
  return {.workers = kWorkers,
          .schedules = {{.algorithm = "double-tree"}, {.algorithm = "ring"}},
          .tensors = {{.elements = 12, .partitions = 2, .schedule = 1}}};
}

void push_pull(WorkerGroup& group) {
  for (uint32_t worker = 0; worker < kWorkers; ++worker) ASSERT_TRUE(group.start(worker).ok());
  ASSERT_TRUE(group.deliver_all().ok());
  ASSERT_THAT(group.take_done(), SizeIs(kWorkers));
}

std::vector<std::vector<Event>> take(WorkerGroup& group) {
  std::vector<std::vector<Event>> events;
  for (trace::Recorder& recorder : group.recorders) events.push_back(recorder.take().events);
  return events;
}

std::vector<Event> select(const std::vector<Event>& events, Kind kind) {
  std::vector<Event> selected;
  for (const Event& event : events) {
    if (event.kind == kind) selected.push_back(event);
  }
  return selected;
}

// Identifies a slice on both workers.
using Slice = std::tuple<uint32_t, uint32_t, uint64_t, uint32_t, uint32_t, uint32_t, uint32_t>;
std::multiset<Slice> slices(const std::vector<std::vector<Event>>& events, Kind kind) {
  std::multiset<Slice> found;
  for (uint32_t worker = 0; worker < events.size(); ++worker) {
    for (const Event& event : select(events[worker], kind)) {
      const bool is_sender = kind == Kind::kSliceSent;
      found.insert({is_sender ? worker : event.peer, is_sender ? event.peer : worker, event.step, event.partition,
                    event.schedule_step, event.chunk, event.bytes});
    }
  }
  return found;
}

TEST(ExecutorTrace, HasEachSliceAtBothEnds) {
  WorkerGroup group(two_partitions());
  for (trace::Recorder& recorder : group.recorders) recorder.start();
  push_pull(group);
  push_pull(group);
  const std::vector<std::vector<Event>> events = take(group);
  // A ring sends 2(n-1) slices in as many steps; half of them are added, and half are copied.
  for (const std::vector<Event>& of_worker : events) {
    EXPECT_THAT(select(of_worker, Kind::kSliceSent), SizeIs(2 * 2 * 4)) << "push_pulls, partitions, slices";
    EXPECT_THAT(select(of_worker, Kind::kSliceArrived), SizeIs(2 * 2 * 4));
    EXPECT_THAT(select(of_worker, Kind::kSliceAdded), SizeIs(2 * 2 * 2));
    EXPECT_THAT(select(of_worker, Kind::kSliceCopied), SizeIs(2 * 2 * 2));
    EXPECT_THAT(select(of_worker, Kind::kBegun), SizeIs(2 * 2));
    EXPECT_THAT(select(of_worker, Kind::kEnded), SizeIs(2 * 2));
    for (const Event& event : of_worker) EXPECT_EQ(event.schedule, 1);
  }
  const std::multiset<Slice> sent = slices(events, Kind::kSliceSent);
  EXPECT_EQ(sent, slices(events, Kind::kSliceArrived));
  EXPECT_EQ(std::set<Slice>(sent.begin(), sent.end()).size(), sent.size()) << "two slices look the same";
  std::multiset<Slice> received = slices(events, Kind::kSliceAdded);
  received.merge(slices(events, Kind::kSliceCopied));
  EXPECT_EQ(sent, received);
}

TEST(ExecutorTrace, OrdersTheLifeOfAPartition) {
  WorkerGroup group({.workers = 2, .tensors = {{.elements = 8}}});
  for (trace::Recorder& recorder : group.recorders) recorder.start();
  ASSERT_TRUE(group.start(1).ok());
  ASSERT_TRUE(group.deliver_next(0).ok()) << "the slice comes before worker 0 begins";
  ASSERT_TRUE(group.start(0).ok());
  ASSERT_TRUE(group.deliver_all().ok());
  const std::vector<Event> events = take(group)[0];
  std::vector<Kind> kinds;
  for (const Event& event : events) kinds.push_back(event.kind);
  EXPECT_THAT(kinds, ElementsAre(Kind::kSliceArrived, Kind::kBegun, Kind::kSliceSent, Kind::kSliceAdded,
                                 Kind::kSliceSent, Kind::kSliceArrived, Kind::kSliceCopied, Kind::kEnded));
  EXPECT_EQ(events[1].bytes, 32u);
  for (const size_t i : {0, 2, 3, 4, 5, 6}) {
    EXPECT_EQ(events[i].bytes, 16u);
    EXPECT_EQ(events[i].peer, 1u);
  }
}

TEST(ExecutorTrace, RecordsRepeatedSlicesOnce) {
  WorkerGroup group(two_partitions());
  for (trace::Recorder& recorder : group.recorders) recorder.start();
  for (uint32_t worker = 0; worker < kWorkers; ++worker) ASSERT_TRUE(group.start(worker).ok());
  group.connect(0, 1);
  group.connect(1, 2);
  ASSERT_TRUE(group.deliver_all().ok());
  EXPECT_GT(group[0].counters().repeated_slices, 0u);
  const std::vector<std::vector<Event>> events = take(group);
  EXPECT_EQ(slices(events, Kind::kSliceSent).size(), kWorkers * 2 * 4);
  EXPECT_EQ(slices(events, Kind::kSliceSent), slices(events, Kind::kSliceArrived));
}

TEST(ExecutorTrace, IsEmptyUnlessOn) {
  WorkerGroup group(two_partitions());
  push_pull(group);
  EXPECT_THAT(take(group), Each(IsEmpty()));
}

}  // namespace
}  // namespace gleaner::testing
