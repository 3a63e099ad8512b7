// Tests that tensors in the memory of a GPU come back summed, bit for bit, and in order with the program's streams.
#include "tests/unit/device_stage/rig.h"

namespace gleaner::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class Values : public StageOnGpu, public ::testing::WithParamInterface<uint64_t> {
 protected:
  Values() : StageOnGpu(GetParam()) {}
};
INSTANTIATE_TEST_SUITE_P(Seeds, Values, ::testing::Range<uint64_t>(0, 6));

// The producer is held until all is queued, so a copy that does not wait for it would take the wrong bytes.
TEST_P(Values, EveryByteGoesThroughOnce) {
  std::vector<size_t> sizes = {4, 5000, 0, 3 * kMib, 5 * kMib};
  sizes.resize(25, 1024);
  std::vector<testing::TensorSpec> tensors;
  for (const size_t size : sizes) tensors.push_back(tensor_of(size));
  Rank& rank = make_rank(tensors);
  rank.sums().takes_last_first = GetParam() % 2 == 1;

  double_.hold(producer, 1);
  std::vector<CUdeviceptr> outputs;
  std::vector<Pushed*> pushed;
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    const CUdeviceptr input = make_tensor(producer, contribution(sizes[i], i));
    const bool is_in_place = i % 2 == 0;
    outputs.push_back(is_in_place || sizes[i] == 0 ? input : caller->allocate(sizes[i]));
    pushed.push_back(&rank.start(i, input, outputs.back(), producer));
  }
  for (int i = 0; i < 5; ++i) rank.poll();
  EXPECT_THAT(rank.sums().order, IsEmpty()) << "the tensors are not made yet";
  EXPECT_FALSE(rank.is_idle());
  double_.hold(producer, 0);
  ASSERT_TRUE(run({&rank}, [&] { return rank.done().size() == sizes.size(); }));
  EXPECT_TRUE(rank.is_idle());
  for (uint32_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(pushed[i]->outcome, absl::OkStatus());
    EXPECT_TRUE(result_of(rank, *pushed[i], outputs[i], sizes[i]) == sum_of(contribution(sizes[i], i))) << i;
  }
  EXPECT_EQ(rank.failure(), absl::OkStatus());
}

// The copies to the GPU wait, so only the program's stream waits for them, and no thread does.
TEST_P(Values, ConsumerWaitsForTheCopiesOfTheResult) {
  Rank& rank = make_rank({tensor_of(2 * kMib)});
  const CUdeviceptr memory = make_tensor(producer, contribution(2 * kMib, 1));
  const CUdeviceptr output = caller->allocate(2 * kMib);
  rank.sums().decide = [](const auto&) { return std::nullopt; };
  const Pushed& pushed = rank.start(0, memory, output, producer);
  ASSERT_TRUE(run({&rank}, [&] { return rank.sums().kept.size() == 2; }));
  double_.hold(to_device(), 1);
  rank.sums().decide = nullptr;
  rank.poll();
  ASSERT_EQ(pushed.outcome, absl::OkStatus()) << "the request ends before its copies do";
  rank.hold(pushed, consumer);
  const ConstBytes seen = caller->read(consumer, output, 2 * kMib);
  double_.hold(to_device(), 0);
  caller->synchronize(consumer);
  EXPECT_TRUE(std::ranges::equal(seen, sum_of(contribution(2 * kMib, 1))));
}

// The second request takes its input from the memory to which the first one's copies still go.
TEST_P(Values, SameTensorAgainWhileItsCopiesAreQueued) {
  const size_t bytes = 3 * kMib;
  Rank& rank = make_rank({tensor_of(bytes)});
  const CUdeviceptr memory = make_tensor(producer, contribution(bytes, 1));
  const Pushed& first = rank.start(0, memory, memory, producer);
  double_.hold(to_device(), 1);
  ASSERT_TRUE(run({&rank}, [&] { return first.outcome.has_value(); }));
  rank.hold(first, consumer);
  const Pushed& second = rank.start(0, memory, memory, consumer);
  rank.poll();
  EXPECT_EQ(rank.sums().order.size(), 3);
  double_.hold(to_device(), 0);
  ASSERT_TRUE(run({&rank}, [&] { return second.outcome.has_value(); }));
  EXPECT_EQ(second.outcome, absl::OkStatus());
  EXPECT_TRUE(result_of(rank, second, memory, bytes) == sum_of(sum_of(contribution(bytes, 1))));
}

// Each slot is used more than once, while copies to the GPU are queued that read it.
TEST_P(Values, SlotsAreUsedAgainAfterTheirCopies) {
  const size_t bytes = 24 * kMib;
  Rank& rank = make_rank({tensor_of(bytes)});
  const CUdeviceptr memory = make_tensor(producer, contribution(bytes, 1));
  const Pushed& pushed = rank.start(0, memory, memory, producer);
  double_.hold(to_device(), 1);
  const size_t slots = watched().pinned.front() / kPiece;
  ASSERT_TRUE(run({&rank}, [&] { return rank.sums().order.size() == slots; }));
  for (int i = 0; i < 5; ++i) rank.poll();
  EXPECT_EQ(rank.sums().order.size(), slots) << "a slot was used again before its copy to the GPU had ended";
  double_.hold(to_device(), 0);
  ASSERT_TRUE(run({&rank}, [&] { return pushed.outcome.has_value(); }));
  EXPECT_TRUE(result_of(rank, pushed, memory, bytes) == sum_of(contribution(bytes, 1)));
  EXPECT_EQ(watched().pinned.size(), 1) << "memory was pinned beside the ring";
}

// The threads of a program may have another GPU's context current, or none.
TEST_P(Values, AnotherGpuIsCurrent) {
  Rank& rank = make_rank({tensor_of(5000)});
  const CUdeviceptr memory = make_tensor(producer, contribution(5000, 1));
  const Pushed* pushed = nullptr;
  {
    const Caller on_gpu_1(driver, 1);
    const CUcontext before = on_gpu_1.current_context();
    pushed = &rank.start(0, memory, memory, producer);
    ASSERT_TRUE(run({&rank}, [&] { return pushed->outcome.has_value(); }));
    EXPECT_EQ(on_gpu_1.current_context(), before);
  }
  EXPECT_EQ(pushed->outcome, absl::OkStatus());
  EXPECT_TRUE(result_of(rank, *pushed, memory, 5000) == sum_of(contribution(5000, 1)));
}

using HostTensors = StageOnGpu;

TEST_F(HostTensors, PassTheStageUnchanged) {
  Rank& rank = make_rank({tensor_of(5000)});
  std::vector<std::byte> values = contribution(5000, 1);
  pipeline::PieceRequest request;
  request.id = 77;
  request.input = Buffer::borrow(values);
  request.output = values;
  rank.sums().decide = [](const auto&) { return std::nullopt; };
  rank.pipeline().start(std::move(request));
  ASSERT_EQ(rank.sums().kept.size(), 1) << "passed inside start()";
  const pipeline::PieceRequest& passed = rank.sums().kept[0];
  EXPECT_EQ(passed.id, 77);
  EXPECT_EQ(passed.input.bytes().data(), values.data());
  EXPECT_EQ(passed.output.data(), values.data());
  EXPECT_EQ(passed.count, UINT32_MAX);
  rank.sums().decide = nullptr;
  rank.poll();
  EXPECT_THAT(rank.done(), ElementsAre(77));
  EXPECT_THAT(watched().pinned, IsEmpty()) << "the GPU was opened for a tensor of the host";
}

}  // namespace
}  // namespace gleaner::device
