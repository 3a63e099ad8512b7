// Tests the small parts of a Sender: queues of frames and items, send slots, regions, and work requests.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "common/transport/rdma/announced_regions.h"
#include "common/transport/rdma/frame_queue.h"
#include "common/transport/rdma/item_queue.h"
#include "common/transport/rdma/remote_regions.h"
#include "common/transport/rdma/send_slots.h"
#include "common/transport/rdma/work_requests.h"
#include "tests/unit/rdma/fake_pair.h"

namespace gleaner::transport::rdma {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(FrameQueue, KeepsTheOrder) {
  BufferPool pool;
  FrameQueue queue;
  EXPECT_TRUE(queue.empty());
  uint64_t pushed = 0, popped = 0;
  const auto push = [&] {
    wire::Header header;
    header.step = pushed++;
    queue.push(header, pool.take(8));
  };
  for (int round = 0; round < 20; ++round) {  // in the end 60 frames wait, and the ring has wrapped around
    for (int i = 0; i < 5; ++i) push();
    for (int i = 0; i < 2; ++i, ++popped) {
      ASSERT_EQ(queue.front().header.step, popped);
      queue.pop();
    }
  }
  for (; !queue.empty(); ++popped) {
    ASSERT_EQ(queue.front().header.step, popped);
    const Buffer payload = queue.front().payload;
    queue.pop();
    EXPECT_TRUE(payload.sole_owner());
  }
  EXPECT_EQ(popped, pushed);
}

std::vector<uint16_t> item_numbers(ConstBytes packet) {
  PacketReader reader = PacketReader::open(packet).value();
  std::vector<uint16_t> numbers;
  while (!reader.done()) numbers.push_back(reader.next()->number);
  return numbers;
}

TEST(ItemQueue, FillsPacketsInOrder) {
  ItemQueue queue(8);
  EXPECT_TRUE(queue.empty());
  for (uint16_t i = 1; i <= 3; ++i) queue.push(ItemKind::kGrant, i, GrantItem{.offset = i});
  queue.push(ItemKind::kTaken, 4);
  std::vector<std::byte> slot(sizeof(PacketHeader) + 2 * item_size(sizeof(GrantItem)));
  PacketWriter first(slot);
  queue.move_to(first);
  EXPECT_THAT(item_numbers(ConstBytes(slot).first(first.finish(0))), ElementsAre(1, 2));
  EXPECT_FALSE(queue.empty());
  PacketWriter second(slot);
  queue.move_to(second);
  EXPECT_TRUE(queue.empty());
  const size_t size = second.finish(0);
  EXPECT_THAT(item_numbers(ConstBytes(slot).first(size)), ElementsAre(3, 4));
  PacketReader reader = PacketReader::open(ConstBytes(slot).first(size)).value();
  EXPECT_EQ(read_as<GrantItem>(reader.next()->body).offset, 3u);
}

TEST(RemoteRegions, WritesStayWithinRegions) {
  RemoteRegions regions;
  ASSERT_TRUE(regions.add(0, {.address = 1000, .bytes = 100, .key = 7, .index = 2}).ok());
  const auto target = regions.find({.offset = 40, .region = 2, .lane = 0}, 60);
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->address, 1040u);
  EXPECT_EQ(target->key, 7u);
  for (const auto& [grant, size] : {std::pair<GrantItem, size_t>{{.offset = 41, .region = 2}, 60},
                                    {{.offset = 0, .region = 2}, 101},
                                    {{.offset = UINT64_MAX, .region = 2}, 60},
                                    {{.offset = 0, .region = 1}, 1},
                                    {{.offset = 0, .region = 3}, 1},
                                    {{.offset = 0, .region = 2, .lane = 1}, 1}}) {
    EXPECT_TRUE(absl::IsInvalidArgument(regions.find(grant, size).status())) << grant.offset << " " << grant.region;
  }
  ASSERT_TRUE(regions.add(0, {.address = 9000, .bytes = 10, .key = 8, .index = 2}).ok());
  EXPECT_EQ(regions.find({.offset = 0, .region = 2}, 10)->key, 8u) << "the region of the same index replaces it";
}

TEST(RemoteRegions, RefusesImpossibleRegions) {
  RemoteRegions regions;
  EXPECT_TRUE(absl::IsInvalidArgument(regions.add(0, {.index = kMaxRegions})));
  EXPECT_TRUE(absl::IsInvalidArgument(regions.add(kMostLanes + 1, {.index = 0})));
  EXPECT_TRUE(regions.add(kMostLanes, {.index = kMaxRegions - 1}).ok());
}

TEST(AnnouncedRegions, EachRegionIsAnnouncedOnce) {
  AnnouncedRegions regions;
  EXPECT_TRUE(regions.add(0, 3, 11));
  EXPECT_FALSE(regions.add(0, 3, 11));
  EXPECT_TRUE(regions.add(0, 2, 12));
  EXPECT_TRUE(regions.add(kMostLanes, 3, 11)) << "a lane has a domain of its own";
  EXPECT_TRUE(regions.add(0, 3, 13)) << "another region has this index now";
}

TEST(SendSlots, SlotsAreUsedAgain) {
  std::vector<std::byte> memory(SendSlots::kMemory);
  SendSlots slots(memory, 9);
  std::vector<bool> taken(SendSlots::kCount);
  for (size_t i = 0; i < SendSlots::kCount; ++i) {
    ASSERT_TRUE(slots.has_free());
    const uint16_t next = slots.next();
    ASSERT_EQ(slots.take(), next);
    EXPECT_FALSE(taken.at(next));
    taken[next] = true;
  }
  EXPECT_FALSE(slots.has_free());
  slots.give_back(5);
  ASSERT_TRUE(slots.has_free());
  EXPECT_EQ(slots.take(), 5u);
  EXPECT_EQ(slots.memory_of(5).data(), memory.data() + 5 * kSlotBytes);
  EXPECT_EQ(slots.piece(5, 40).addr, reinterpret_cast<uint64_t>(slots.memory_of(5).data()));
  EXPECT_EQ(slots.piece(5, 40).length, 40u);
  EXPECT_EQ(slots.piece(5, 40).lkey, 9u);
}

TEST(WorkRequests, FewAskForCompletions) {
  WorkRequests requests;
  FakePair fake;
  EXPECT_TRUE(requests.post(&fake.pair).ok());
  EXPECT_THAT(fake.posted, IsEmpty()) << "nothing to post";
  for (uint16_t i = 0; i < 11; ++i) requests.add({}, i);
  EXPECT_TRUE(requests.post(&fake.pair).ok());
  EXPECT_EQ(fake.posted.size(), 11u);
  EXPECT_THAT(fake.signaled, ElementsAre(0, 8, 10)) << "every eighth request and the last are signaled";
  fake.error = ENOMEM;
  requests.add({}, 11);
  EXPECT_TRUE(absl::IsResourceExhausted(requests.post(&fake.pair)));
}

TEST(WorkRequests, CompletionReleasesEarlierRequests) {
  WorkRequests requests;
  FakePair fake;
  std::vector<uint16_t> released;
  const auto complete = [&](uint64_t number) {
    released.clear();
    requests.complete(number, [&](uint16_t resource) { released.push_back(resource); });
  };
  for (int round = 0; round < 40; ++round) {  // 120 requests in all: their numbers wrap around
    for (uint16_t i = 0; i < 3; ++i) requests.add({}, static_cast<uint16_t>(70 + i));
    EXPECT_FALSE(requests.all_completed());
    ASSERT_TRUE(requests.post(&fake.pair).ok());
    complete(fake.posted.back() - 1);
    ASSERT_THAT(released, ElementsAre(70, 71));
    EXPECT_FALSE(requests.all_completed());
    complete(fake.posted.back());
    ASSERT_THAT(released, ElementsAre(72));
    EXPECT_TRUE(requests.all_completed());
  }
}

}  // namespace
}  // namespace gleaner::transport::rdma
