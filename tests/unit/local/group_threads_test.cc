// Tests with one thread per local rank. Each thread waits on its rank's descriptor, as the I/O thread of a process
// does.
#include <atomic>
#include <thread>

#include "tests/unit/local/ranks.h"

namespace gleaner::testing {
namespace {

// Waits for a long time if there is no work. If a descriptor failed to wake its thread, the test would not end in time.
TEST(GroupThreads, TrainSideBySide) {
  constexpr uint32_t kRanks = 4;
  constexpr uint32_t kTensors = 12;
  constexpr uint64_t kSteps = 15;
  const auto secret = fresh_secret();
  std::vector<local::TensorShape> shapes;
  for (uint32_t i = 0; i < kTensors; ++i) shapes.push_back({(size_t{1} << i) * 50 + i, DataType::kFloat32});

  std::atomic<uint32_t> good{0};
  const auto train = [&](uint32_t rank) {
    local::Options options = options_of(rank, kRanks);
    options.secret = secret;
    TestRank self(options);
    std::vector<uint32_t> late;
    self.network = [&](uint32_t tensor, MutableBytes) { late.push_back(tensor); };
    ASSERT_TRUE(self.group->register_tensors(shapes).ok());
    std::mt19937 random(rank);
    std::vector<std::vector<float>> data(kTensors);
    for (uint64_t step = 0; step < kSteps; ++step) {
      std::vector<uint32_t> order;
      for (uint32_t i = 0; i < kTensors; ++i) order.insert(order.begin() + random() % (i + 1), i);
      for (uint32_t tensor : order) {
        data[tensor].assign(shapes[tensor].elements, static_cast<float>(rank + tensor + step));
        const auto bytes = std::as_writable_bytes(std::span(data[tensor]));
        ASSERT_TRUE(self.group->start(tensor, ReduceOp::kSum, bytes, bytes).ok());
      }
      while (self.done_count < kTensors * (step + 1)) {
        ASSERT_FALSE(self.failed) << *self.failed;
        for (const uint32_t tensor : std::exchange(late, {})) self.group->publish(tensor, absl::OkStatus());
        self.turn(60000);
      }
      for (uint32_t tensor = 0; tensor < kTensors; ++tensor) {
        const auto expected = static_cast<float>(6 + 4 * (tensor + step));
        ASSERT_EQ(data[tensor], std::vector<float>(shapes[tensor].elements, expected));
      }
    }
    while (!self.group->idle()) self.turn(60000);
    ++good;
  };
  std::vector<std::thread> threads;
  for (uint32_t rank = 0; rank < kRanks; ++rank) threads.emplace_back(train, rank);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kRanks);
}

// The leader has more to send at once than a socket holds, and must wait until there is room again.
TEST(GroupThreads, AFullSocketWakesWhenThereIsRoom) {
  constexpr uint32_t kTensors = 20000;
  const auto secret = fresh_secret();
  const auto run = [&](uint32_t rank) {
    local::Options options = options_of(rank, 2);
    options.secret = secret;
    TestRank self(options);
    self.network = [](uint32_t, MutableBytes) {};
    ASSERT_TRUE(self.group->register_tensors(std::vector<local::TensorShape>(kTensors, {1, DataType::kInt32})).ok());
    std::vector<int32_t> data(kTensors, 21);
    for (uint32_t tensor = 0; tensor < kTensors; ++tensor) {
      const auto bytes = std::as_writable_bytes(std::span(&data[tensor], 1));
      ASSERT_TRUE(self.group->start(tensor, ReduceOp::kSum, bytes, bytes).ok());
    }
    if (rank == 0) {
      while (self.reduced.size() < kTensors && !self.failed) self.turn(60000);
      for (const uint32_t tensor : self.reduced) self.group->publish(tensor, absl::OkStatus());
    }
    while ((self.done_count < kTensors || !self.group->idle()) && !self.failed) self.turn(60000);
    EXPECT_FALSE(self.failed);
    EXPECT_EQ(data, std::vector<int32_t>(kTensors, 42));
  };
  std::thread other(run, 1);
  run(0);
  other.join();
}

}  // namespace
}  // namespace gleaner::testing
