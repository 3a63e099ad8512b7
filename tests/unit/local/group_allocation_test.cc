// Tests that a push_pull over local ranks causes no allocations after a warm-up.
#include "tests/unit/engine/allocation_counter.h"
#include "tests/unit/local/ranks.h"

namespace gleaner::testing {
namespace {

struct Quiet : local::Events {
  void on_connected() override { connected = true; }
  void on_reduced(uint32_t tensor, ReduceOp, MutableBytes, MutableBytes) override {
    group->publish(tensor, absl::OkStatus());
  }
  void on_done(uint32_t, const absl::Status& status) override { done += status.ok() ? 1 : 1000000; }
  void on_failed(const absl::Status&) override {}

  std::unique_ptr<local::Group> group;
  bool connected = false;
  size_t done = 0;
};

TEST(GroupAllocation, NoneOnceWarm) {
  constexpr uint32_t kTensors = 30;
  const auto secret = fresh_secret();
  Quiet ranks[3];
  for (uint32_t rank = 0; rank < 3; ++rank) {
    local::Options options = options_of(rank, 3);
    options.secret = secret;
    ranks[rank].group = *local::Group::create(test_env(), options, test_kernels(), &ranks[rank]);
  }
  std::vector<local::TensorShape> shapes;
  for (uint32_t i = 0; i < kTensors; ++i) shapes.push_back({i * 5000, DataType::kFloat16});
  for (Quiet& rank : ranks) ASSERT_TRUE(rank.group->register_tensors(shapes).ok());
  std::vector<std::byte> data(3 * kTensors * 5000 * 2);

  const auto step = [&](size_t number) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      for (uint32_t tensor = 0; tensor < kTensors; ++tensor) {
        const MutableBytes bytes(data.data() + rank * 2 * 5000 * kTensors, tensor * 5000 * 2);
        ASSERT_TRUE(ranks[rank].group->start(tensor, ReduceOp::kSum, bytes, bytes).ok());
      }
    }
    while (ranks[0].done + ranks[1].done + ranks[2].done < 3 * kTensors * number) {
      for (Quiet& rank : ranks) rank.group->poll();
    }
  };
  step(1);
  step(2);
  const uint64_t before = allocations_so_far().count;
  step(3);
  step(4);
  EXPECT_EQ(allocations_so_far().count, before);
}

}  // namespace
}  // namespace gleaner::testing
