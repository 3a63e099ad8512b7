// Counts the allocations of requests once the stage is warm: one per piece, the block of the buffer that borrows the
// piece's slot (RegisteredMemory::borrow), as LocalStage has it.
#include "tests/unit/engine/allocation_counter.h"

#include <gtest/gtest.h>

#include "comm-lib/device/cuda_device.h"
#include "comm-lib/device/stage/device_stage.h"
#include "comm-lib/pipeline/pipeline.h"
#include "common/base/env.h"
#include "common/trace/recorder.h"
#include "tests/unit/device/idle_api.h"
#include "tests/unit/engine/plans.h"

namespace gleaner::device {
namespace {

using gleaner::testing::allocations_so_far;

// Ends each piece at once.
class Ends : public pipeline::Stage {
 public:
  void start(pipeline::PieceRequest piece) override {
    const uint64_t id = piece.id;
    piece.input = {};
    finish(id, absl::OkStatus());
  }
};

struct Ended final : pipeline::Listener {
  void on_done(uint64_t, const absl::Status& status) override { count += status.ok() ? 1 : 1000000; }
  void on_failed(const absl::Status& status) override { ADD_FAILURE() << status; }
  size_t count = 0;
};

TEST(DeviceStageAllocation, OnePerPieceOnceWarm) {
  const SystemEnv env({"device_stage_test", LogLevel::kOff});
  const auto device = *open_cuda_device(*Driver::start(idle_api()), 0);
  const auto ready = *device->create_event();
  const auto copied = *device->create_event();
  ASSERT_TRUE(device->record(CallerStream{}, *ready).ok());
  Ended ended;
  std::vector<std::unique_ptr<pipeline::Stage>> stages;
  trace::Recorder recorder(env.env().clock);
  stages.push_back(std::make_unique<DeviceStage>(env.env(), StageOptions{}, &recorder));
  stages.push_back(std::make_unique<Ends>());
  const auto pipeline = *pipeline::Pipeline::create(std::move(stages), &ended);
  constexpr uint32_t kTensors = 10;
  constexpr uint32_t kPieces = 3;
  const auto plan = testing::build_plan(
      {.tensors = std::vector<testing::TensorSpec>(kTensors, {.owners = {0, 0, 0}, .bytes = 1 << 20})});
  ASSERT_TRUE(pipeline->on_event(pipeline::Prepare{plan}).ok());
  ASSERT_TRUE(pipeline->on_event(pipeline::Commit{1}).ok());
  std::vector<std::byte> memory(kPieces << 20);
  const Buffer input = Buffer::borrow_lasting(memory);

  const auto step = [&](size_t number) {
    for (uint32_t tensor = 0; tensor < kTensors; ++tensor) {
      pipeline::PieceRequest request{{tensor, tensor, ReduceOp::kSum, input, memory}};
      request.access = {device.get(), CallerStream{}, ready.get(), copied.get()};
      pipeline->start(std::move(request));
    }
    while (ended.count < number * kTensors) pipeline->poll();
  };
  step(1);
  step(2);
  const uint64_t before = allocations_so_far().count;
  step(3);
  step(4);
  EXPECT_EQ(allocations_so_far().count - before, 2 * kTensors * kPieces);
  recorder.start();
  const uint64_t before_trace = allocations_so_far().count;
  step(5);
  step(6);
  EXPECT_EQ(allocations_so_far().count - before_trace, 2 * kTensors * kPieces) << "while a trace is on";
}

}  // namespace
}  // namespace gleaner::device
