// Tests of local ranks whose tensors are in the memory of GPUs, over the double of CUDA's driver.
#include <algorithm>
#include <thread>

#include "absl/strings/match.h"
#include "comm-lib/device/event_pool.h"
#include "tests/unit/device/caller.h"
#include "tests/unit/local/ranks.h"

namespace gleaner::testing {
namespace {

using device::CUdeviceptr;
using device::CUstream;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using trace::Kind;

// A rank's program: its GPU, a stream, and tensors of one byte value.
struct GpuProgram {
  explicit GpuProgram(int ordinal)
      : driver(*device::Driver::load(CUDA_DOUBLE)),
        caller(driver, ordinal),
        stream(caller.create_stream()),
        gpu(*device::open_cuda_device(driver, ordinal)),
        ready(*gpu->create_event()),
        copied(*gpu->create_event()) {}

  // Marks what is queued on the stream now.
  device::Access access() {
    EXPECT_TRUE(gpu->record(device::number_of(stream), *ready).ok());
    return {gpu.get(), device::number_of(stream), ready.get(), copied.get()};
  }
  CUdeviceptr tensor(const std::vector<std::byte>& bytes) {
    caller.make_current();
    const CUdeviceptr address = caller.allocate(bytes.size());
    auto& source = sources.emplace_back(*gpu->allocate_pinned(bytes.size()));
    std::ranges::copy(bytes, source->bytes().begin());
    EXPECT_EQ(driver->api().cuMemcpyHtoDAsync(address, source->bytes().data(), bytes.size(), stream), 0);
    return address;
  }
  std::vector<std::byte> read(CUdeviceptr address, size_t bytes) {
    caller.make_current();
    const ConstBytes to = caller.read(stream, address, bytes);
    caller.synchronize(stream);
    return {to.begin(), to.end()};
  }

  std::shared_ptr<const device::Driver> driver;
  device::Caller caller;
  CUstream stream;
  std::unique_ptr<device::Device> gpu;
  std::unique_ptr<device::Event> ready;
  std::unique_ptr<device::Event> copied;
  std::vector<std::unique_ptr<device::PinnedMemory>> sources;
};

MutableBytes span_of(CUdeviceptr address, size_t bytes) { return {reinterpret_cast<std::byte*>(address), bytes}; }

class GroupGpu : public ::testing::TestWithParam<uint64_t> {  // the seed
 protected:
  static constexpr size_t kElements = 70'001;
  static constexpr size_t kTensorBytes = kElements * sizeof(float);

  explicit GroupGpu(size_t gpu_bytes = 0) {
    double_.reset(GetParam(), 2, 12040);
    for (int rank = 0; rank < 2; ++rank) programs_.push_back(std::make_unique<GpuProgram>(rank));
    ranks_ = std::make_unique<Ranks>(2, gpu_bytes);
    EXPECT_TRUE(ranks_->connect());
    ranks_->register_tensors({{kElements, DataType::kFloat32}});
    for (uint64_t rank = 0; rank < 2; ++rank) inputs_.push_back(random_tensor(DataType::kFloat32, kElements, rank));
  }
  // The programs wait for their streams at their end.
  ~GroupGpu() override {
    ranks_.reset();
    EXPECT_EQ(double_.take_findings(), "");
    programs_.clear();
    double_.take_findings();
  }

  // Starts the sum in place, with the stream held before the tensor is written if `is_held`.
  void start(size_t rank, bool is_held = false) {
    GpuProgram& program = *programs_[rank];
    if (is_held) double_.hold(program.stream, 1);
    tensors_[rank] = program.tensor(inputs_[rank]);
    const MutableBytes memory = span_of(tensors_[rank], kTensorBytes);
    ASSERT_TRUE((*ranks_)[rank].group->start(0, ReduceOp::kSum, memory, memory, program.access()).ok());
  }
  bool all_done(size_t count) {
    return ranks_->until([&] { return ranks_->all([&](const TestRank& rank) { return rank.done_count == count; }); });
  }
  void turn_often() {
    for (int i = 0; i < 200; ++i) ranks_->turn();
  }
  std::vector<std::byte> result(size_t rank) { return programs_[rank]->read(tensors_[rank], kTensorBytes); }

  const device::Double double_;
  std::vector<std::unique_ptr<GpuProgram>> programs_;
  std::unique_ptr<Ranks> ranks_;
  std::vector<std::vector<std::byte>> inputs_;
  std::array<CUdeviceptr, 2> tensors_{};
};

TEST_P(GroupGpu, SumsAreThoseOfTheHost) {
  const auto expected = expected_sum(DataType::kFloat32, inputs_);
  for (size_t step = 1; step <= 3; ++step) {
    start(0);
    start(1);
    ASSERT_TRUE(all_done(step));
    EXPECT_TRUE(result(0) == expected && result(1) == expected) << "step " << step;
  }
}

TEST_P(GroupGpu, OneRankMayBeOnTheHost) {
  std::vector<std::byte> output(kTensorBytes);
  start(0);
  ASSERT_TRUE((*ranks_)[1].group->start(0, ReduceOp::kSum, inputs_[1], output).ok());
  ASSERT_TRUE(all_done(1));
  EXPECT_TRUE(result(0) == output && output == expected_sum(DataType::kFloat32, inputs_));
}

TEST_P(GroupGpu, TensorsAreReadAfterTheirStream) {
  start(0);
  start(1, true);
  turn_often();
  EXPECT_TRUE((*ranks_)[0].reduced.empty());
  double_.hold(programs_[1]->stream, 0);
  ASSERT_TRUE(all_done(1));
  EXPECT_TRUE(result(0) == expected_sum(DataType::kFloat32, inputs_));
}

TEST_P(GroupGpu, TraceHasTheCopies) {
  start(0);
  start(1);
  ASSERT_TRUE(all_done(1));
  EXPECT_THAT((*ranks_)[0].points, ::testing::IsEmpty()) << "no trace is on";
  for (size_t rank = 0; rank < 2; ++rank) (*ranks_)[rank].traces = true;
  start(0);
  start(1, true);
  turn_often();
  EXPECT_THAT((*ranks_)[1].points, ::testing::IsEmpty()) << "the tensor is not made yet";
  double_.hold(programs_[1]->stream, 0);
  ASSERT_TRUE(all_done(2));
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_THAT((*ranks_)[rank].points, ElementsAre(Kind::kProduced, Kind::kCopyOutBegun, Kind::kCopyOutEnded,
                                                    Kind::kCopyInBegun, Kind::kCopyInEnded));
  }
}

TEST_P(GroupGpu, RequestEndsAfterTheCopyOfItsResult) {
  start(0);
  start(1);
  ASSERT_TRUE(all_done(1));
  // Other streams of the program see the result, too.
  GpuProgram& program = *programs_[0];
  program.caller.make_current();
  const CUstream other = program.caller.create_stream();
  const ConstBytes seen = program.caller.read(other, tensors_[0], kTensorBytes);
  program.caller.synchronize(other);
  EXPECT_TRUE(std::ranges::equal(seen, expected_sum(DataType::kFloat32, inputs_)));
}

TEST_P(GroupGpu, FailedGpuFailsTheGroup) {
  start(0);
  double_.fail_kernel(programs_[1]->stream, device::CUDA_ERROR_ILLEGAL_ADDRESS);
  tensors_[1] = tensors_[0];
  const MutableBytes memory = span_of(tensors_[1], kTensorBytes);
  const absl::Status started =
      (*ranks_)[1].group->start(0, ReduceOp::kSum, memory, memory,
                                {programs_[1]->gpu.get(), {}, programs_[1]->ready.get(), programs_[1]->copied.get()});
  if (started.ok()) {
    ASSERT_TRUE(
        ranks_->until([&] { return ranks_->all([](const TestRank& rank) { return rank.failed.has_value(); }); }));
    EXPECT_THAT((*ranks_)[0].failed->message(), HasSubstr("local rank 1"));
  }
}

TEST_P(GroupGpu, GpuThatCantBeOpenedFailsTheGroup) {
  start(0);
  double_.fail_next("cuStreamCreateWithPriority", device::CUDA_ERROR_OUT_OF_MEMORY);
  start(1);
  ASSERT_TRUE(ranks_->until([&] { return ranks_->all([](const TestRank& rank) { return rank.failed.has_value(); }); }));
  EXPECT_THAT(std::string((*ranks_)[0].failed->message()), HasSubstr("local rank 1"));
}

// The segment is unmapped after the copy into it.
TEST_P(GroupGpu, EndWaitsForCopies) {
  start(0, true);
  turn_often();
  std::thread program([&] {
    absl::SleepFor(absl::Milliseconds(30));
    double_.hold(programs_[0]->stream, 0);
  });
  ranks_->close(0);
  program.join();
}

INSTANTIATE_TEST_SUITE_P(Seeds, GroupGpu, ::testing::Range<uint64_t>(0, 4));

// The GPUs themselves sum, from some step on.
class GroupGpuSums : public GroupGpu {
 protected:
  GroupGpuSums() : GroupGpu(1 << 30) {}

  void run(size_t first_step, size_t steps) {
    for (size_t step = first_step; step < first_step + steps; ++step) {
      for (size_t rank = 0; rank < 2; ++rank)
        inputs_[rank] = random_tensor(DataType::kFloat32, kElements, 2 * step + rank);
      start(0);
      start(1);
      ASSERT_TRUE(all_done(step + 1));
      const auto expected = expected_sum(DataType::kFloat32, inputs_);
      EXPECT_TRUE(result(0) == expected && result(1) == expected) << "step " << step;
      turn_often();  // messages about zones
    }
  }
  // Returns whether the next step launches a kernel; that ends the group.
  bool next_step_launches() {
    double_.fail_next("cuLaunchKernel", device::CUDA_ERROR_LAUNCH_FAILED);
    start(0);
    start(1);
    const size_t done = (*ranks_)[0].done_count;
    const auto is_over = [&](const TestRank& rank) { return rank.failed.has_value() || rank.done_count > done; };
    EXPECT_TRUE(ranks_->until([&] { return ranks_->all(is_over); }));
    return ranks_->all([](const TestRank& rank) { return rank.failed.has_value(); });
  }
};

TEST_P(GroupGpuSums, AreThoseOfTheHost) {
  run(0, 6);
  EXPECT_TRUE(next_step_launches());
}

TEST_P(GroupGpuSums, TraceHasCopiesSumsAndResults) {
  run(0, 4);
  for (size_t rank = 0; rank < 2; ++rank) (*ranks_)[rank].traces = true;
  run(4, 1);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_THAT((*ranks_)[rank].points,
                ElementsAre(Kind::kProduced, Kind::kReduceBegun, Kind::kReduceEnded, Kind::kReduceBegun,
                            Kind::kReduceEnded, Kind::kCopyOutBegun, Kind::kCopyOutEnded, Kind::kCopyInBegun,
                            Kind::kCopyInEnded, Kind::kBroadcastBegun, Kind::kBroadcastEnded));
  }
}

TEST_P(GroupGpuSums, RankOnTheHostMakesTheOthersCopy) {
  run(0, 3);
  std::vector<std::byte> output(kTensorBytes);
  start(0);
  ASSERT_TRUE((*ranks_)[1].group->start(0, ReduceOp::kSum, inputs_[1], output).ok());
  ASSERT_TRUE(all_done(4));
  EXPECT_TRUE(result(0) == output && output == expected_sum(DataType::kFloat32, inputs_));
  run(4, 2);
  EXPECT_TRUE(next_step_launches());
}

TEST_P(GroupGpuSums, WithoutPeerAccessTheHostSums) {
  double_.fail_next("cuIpcOpenMemHandle", device::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
  run(0, 4);
  EXPECT_FALSE(next_step_launches());
}

TEST_P(GroupGpuSums, WithoutMemoryOnTheGpuTheHostSums) {
  ranks_ = std::make_unique<Ranks>(2, 1000);
  ASSERT_TRUE(ranks_->connect());
  ranks_->register_tensors({{kElements, DataType::kFloat32}});
  run(0, 4);
  EXPECT_FALSE(next_step_launches());
}

TEST_P(GroupGpuSums, FailedGroupFreesZonesWhenAllRanksHaveClosed) {
  run(0, 4);
  const int before = double_.count_device_memory();
  (*ranks_)[0].group->fail(absl::AbortedError("a test"));
  ASSERT_TRUE(ranks_->until([&] { return (*ranks_)[1].failed.has_value(); }));
  ranks_->close(0);
  EXPECT_EQ(double_.count_device_memory(), before - 1) << "rank 1 may still write to rank 0's zone";
  ranks_->close(1);
  EXPECT_EQ(double_.count_device_memory(), before - 4) << "a zone of each rank, which the other had open, too";
}

INSTANTIATE_TEST_SUITE_P(Seeds, GroupGpuSums, ::testing::Range<uint64_t>(0, 4));

}  // namespace
}  // namespace gleaner::testing
