// Tests that failures of the GPU, of the network and of memory end requests, and leave the program's memory in order.
#include "tests/unit/device_stage/rig.h"

namespace gleaner::device {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class Failures : public StageOnGpu {
 protected:
  void keep_pieces(Rank& rank) {
    rank.sums().decide = [](const auto&) { return std::nullopt; };
  }
};

TEST_F(Failures, GpuFailsBeforeTheTensorIsMade) {
  Rank& rank = make_rank({tensor_of(3 * kMib)});
  double_.hold(producer, 1);
  const CUdeviceptr memory = make_tensor(producer, contribution(3 * kMib, 1));
  double_.fail_kernel(producer, CUDA_ERROR_ILLEGAL_ADDRESS);
  rank.start(0, memory, memory, producer);
  double_.hold(producer, 0);
  ASSERT_TRUE(run({&rank}, [&] { return !rank.failure().ok(); }));
  EXPECT_THAT(rank.failure().message(), ::testing::HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_TRUE(rank.is_idle());
  EXPECT_THAT(rank.sums().order, IsEmpty());
  rank.end();  // returns, although no copy ends any more
}

TEST_F(Failures, GpuFailsWhileTheResultIsCopied) {
  Rank& rank = make_rank({tensor_of(3 * kMib)});
  const CUdeviceptr memory = make_tensor(producer, contribution(3 * kMib, 1));
  rank.start(0, memory, memory, producer);
  keep_pieces(rank);
  ASSERT_TRUE(run({&rank}, [&] { return rank.sums().kept.size() == 3; }));
  double_.hold(to_device(), 1);
  rank.sums().decide = [](const pipeline::PieceRequest& piece) -> std::optional<absl::Status> {
    if (piece.first > 0) return std::nullopt;
    return absl::OkStatus();
  };
  rank.poll();
  double_.fail_kernel(producer, CUDA_ERROR_ILLEGAL_ADDRESS);
  ASSERT_TRUE(run({&rank}, [&] { return !rank.failure().ok(); }));
  rank.end();
}

TEST_F(Failures, GpuFailsBetweenCopies) {
  Rank& rank = make_rank({tensor_of(kMib)});
  const CUdeviceptr memory = make_tensor(producer, contribution(kMib, 1));
  rank.start(0, memory, memory, producer);
  keep_pieces(rank);
  ASSERT_TRUE(run({&rank}, [&] { return rank.sums().kept.size() == 1; }));
  double_.fail_kernel(producer, CUDA_ERROR_ILLEGAL_ADDRESS);
  caller->synchronize_failed(producer);
  rank.sums().decide = nullptr;
  ASSERT_TRUE(run({&rank}, [&] { return !rank.failure().ok(); })) << "the copy to the GPU tells the failure";
  rank.end();
}

// After the failure the program writes to both tensors. The one has a copy to the GPU in the queue, the other copies to
// the host; without an order behind them the double finds the writes.
TEST_F(Failures, CopiesInTheQueueAreMarkedForTheProgram) {
  Rank& rank = make_rank({tensor_of(2 * kMib), tensor_of(2 * kMib), tensor_of(4)});
  const CUdeviceptr first = make_tensor(producer, contribution(2 * kMib, 1));
  const Pushed& copied_back = rank.start(0, first, first, producer);
  keep_pieces(rank);
  ASSERT_TRUE(run({&rank}, [&] { return rank.sums().kept.size() == 2; }));
  double_.hold(to_device(), 1);
  rank.sums().decide = [](const pipeline::PieceRequest& piece) -> std::optional<absl::Status> {
    if (piece.first > 0) return std::nullopt;
    return absl::OkStatus();
  };
  rank.poll();

  double_.hold(to_host(), 1);
  const CUdeviceptr second = make_tensor(producer, contribution(2 * kMib, 2));
  const Pushed& copied_out = rank.start(1, second, second, producer);
  ASSERT_TRUE(run({&rank}, [&] { return rank.stage().queued_to_host() == 2 * kMib; }));

  rank.fail(absl::UnavailableError("worker/1 is lost"));
  EXPECT_TRUE(rank.is_idle());
  EXPECT_FALSE(copied_back.outcome.has_value() || copied_out.outcome.has_value()) << "the rank ends its requests";
  ASSERT_TRUE(copied_back.copied->is_recorded());
  ASSERT_TRUE(copied_out.copied->is_recorded());
  rank.hold(copied_back, consumer);
  caller->write(consumer, first, 2 * kMib, 0);
  rank.hold(copied_out, consumer);
  caller->write(consumer, second, 2 * kMib, 0);
  double_.hold(to_host(), 0);
  double_.hold(to_device(), 0);
  caller->synchronize(consumer);
  for (int i = 0; i < 3; ++i) rank.poll();
  EXPECT_THAT(rank.sums().order, SizeIs(2)) << "a piece was passed on after the failure";
}

TEST_F(Failures, TensorThatHasNotBegunIsNotMarked) {
  Rank& rank = make_rank({tensor_of(5 * kMib), tensor_of(4)});
  double_.hold(producer, 1);
  const CUdeviceptr large = make_tensor(producer, contribution(5 * kMib, 1));
  const CUdeviceptr small = make_tensor(producer, contribution(4, 2));
  rank.start(0, large, large, producer);
  const Pushed& waiting = rank.start(1, small, small, producer);
  rank.fail(absl::UnavailableError("worker/1 is lost"));
  EXPECT_FALSE(waiting.copied->is_recorded());
  double_.hold(producer, 0);
}

TEST_F(Failures, InputIsReleased) {
  Rank& rank = make_rank({tensor_of(4)});
  const CUdeviceptr memory = make_tensor(producer, contribution(4, 1));
  const std::unique_ptr<Event> ready = *gpu->create_event();
  const std::unique_ptr<Event> copied = *gpu->create_event();
  ASSERT_TRUE(gpu->record(number_of(producer), *ready).ok());
  pipeline::PieceRequest request;
  request.id = 1;
  request.output = {reinterpret_cast<std::byte*>(memory), 4};
  request.input = Buffer::borrow(request.output);
  request.access = {gpu.get(), number_of(producer), ready.get(), copied.get()};
  const Buffer input = request.input;
  rank.pipeline().start(std::move(request));
  EXPECT_FALSE(input.sole_owner());
  rank.fail(absl::UnavailableError("worker/1 is lost"));
  EXPECT_TRUE(input.sole_owner());
  rank.end();
  caller->synchronize(producer);
}

// The tensor is larger than the ring, so it needs the slots of the pieces without a result.
TEST_F(Failures, ErrorOfOnePieceIsTheTensors) {
  const size_t bytes = 24 * kMib;
  Rank& rank = make_rank({tensor_of(bytes)});
  const CUdeviceptr memory = make_tensor(producer, contribution(bytes, 1));
  rank.sums().decide = [](const pipeline::PieceRequest& piece) -> std::optional<absl::Status> {
    if (piece.first == 0 || piece.first > 60) return absl::InvalidArgumentError("worker/1 asks for another op");
    return absl::OkStatus();
  };
  const Pushed& failed = rank.start(0, memory, memory, producer);
  ASSERT_TRUE(run({&rank}, [&] { return failed.outcome.has_value(); }));
  EXPECT_EQ(failed.outcome, absl::InvalidArgumentError("worker/1 asks for another op"));
  EXPECT_TRUE(failed.copied->is_recorded()) << "other pieces were copied";
  EXPECT_TRUE(rank.is_idle());

  rank.sums().decide = nullptr;
  rank.hold(failed, consumer);
  caller->write(consumer, memory, contribution(bytes, 2));
  const Pushed& next = rank.start(0, memory, memory, consumer);
  ASSERT_TRUE(run({&rank}, [&] { return next.outcome.has_value(); }));
  EXPECT_EQ(next.outcome, absl::OkStatus());
  EXPECT_TRUE(result_of(rank, next, memory, bytes) == sum_of(contribution(bytes, 2)));
  EXPECT_THAT(watched().pinned, SizeIs(1)) << "slots were lost";
}

TEST_F(Failures, RequestThatDoesNotMatchThePlan) {
  Rank& rank = make_rank({tensor_of(8)});
  const CUdeviceptr memory = make_tensor(producer, contribution(16, 1));
  const Pushed& overlapping = rank.start(0, memory, memory + 4, producer);
  ASSERT_TRUE(overlapping.outcome.has_value());
  EXPECT_THAT(*overlapping.outcome, IsError(absl::StatusCode::kInvalidArgument, "overlap in part"));
  EXPECT_TRUE(rank.is_idle());
  caller->synchronize(producer);
}

TEST_F(Failures, NoMemoryIsLeftForTheRing) {
  Rank& rank = make_rank({tensor_of(4)});
  const CUdeviceptr memory = make_tensor(producer, contribution(4, 1));
  double_.fail_next("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  rank.start(0, memory, memory, producer);
  EXPECT_THAT(rank.failure(), IsError(absl::StatusCode::kResourceExhausted, "pin")) << "other ranks would wait for it";
  EXPECT_TRUE(rank.is_idle());
  caller->synchronize(producer);
}

TEST_F(Failures, NoMemoryIsLeftBesideTheRing) {
  const size_t bytes = 24 * kMib;
  Rank& rank = make_rank({tensor_of(bytes), tensor_of(kMib)});
  const CUdeviceptr memory = make_tensor(producer, contribution(bytes, 1));
  keep_pieces(rank);
  rank.start(0, memory, memory, producer);
  const size_t slots = watched().pinned.front() / kPiece;
  ASSERT_TRUE(run({&rank}, [&] { return rank.sums().kept.size() == slots; }));
  const CUdeviceptr small = make_tensor(producer, contribution(kMib, 2));
  double_.fail_next("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  rank.start(1, small, small, producer);
  ASSERT_TRUE(run({&rank}, [&] { return !rank.failure().ok(); }));
  EXPECT_THAT(rank.failure(), IsError(absl::StatusCode::kResourceExhausted, "pin"));
  EXPECT_TRUE(rank.is_idle());
  caller->synchronize(producer);
}

}  // namespace
}  // namespace gleaner::device
