// Tests that frames that don't fit are errors, and change nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "tests/status_codes.h"
#include "tests/unit/executor/worker_group.h"

namespace gleaner::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A ring: worker 0 sends to 1, 1 to 2, and 2 to 0; in a push_pull, four slices of 3 values each.
const ScheduledPlan kRing{.workers = 3,
                          .tensors = {{.elements = 9}, {.schedule = std::nullopt}, {.type = DataType::kInt32}}};

struct BadFrame {
  std::string name;
  std::function<void(exchange::Send&)> change;  // of the first slice from worker 0 to worker 1
  std::string problem;
};

const std::vector<BadFrame> kBadFrames = {
    {"Type", [](auto& frame) { frame.header.type = wire::FrameType::kPush; }, "expected SLICE, ARRIVED or AWAIT"},
    {"Tensor", [](auto& frame) { frame.header.tensor = 9; }, "has no such partition"},
    {"Partition", [](auto& frame) { frame.header.partition = 1; }, "has no such partition"},
    {"Summed", [](auto& frame) { frame.header.tensor = 1; }, "no plan up to epoch 1 sums the tensor by schedule 0"},
    {"Schedule", [](auto& frame) { frame.header.schedule = 63; }, "sums the tensor by schedule 63"},
    {"NoSchedule", [](auto& frame) { frame.header.schedule = 1u << 31; }, "sums the tensor by schedule 2147483648"},
    {"Source", [](auto& frame) { frame.header.sender = 2; }, "has no message between them"},
    {"DataType", [](auto& frame) { frame.header.data_type = DataType::kFloat16; }, "it is fp16, expected fp32"},
    {"Accumulates", [](auto& frame) { frame.header.op = ReduceOp::kAccumulate; }, "op is running sum"},
    {"AverageOfInt32",
     [](auto& frame) {
       frame.header.tensor = 2;
       frame.header.data_type = DataType::kInt32;
       frame.header.op = ReduceOp::kAverage;
     },
     "op is average, which tensors of int32"},
    {"Size", [](auto& frame) { frame.payload = frame.payload.slice(0, 8); },
     "it has 8 bytes (header: 12), expected 12"},
    {"SizeInHeader", [](auto& frame) { frame.header.payload_bytes = 8; }, "has 12 bytes (header: 8), expected 12"},
    {"LaterStep", [](auto& frame) { frame.header.step = 1; }, "expected the remaining slices of step 0 first"},
    {"MuchLaterStep", [](auto& frame) { frame.header.step = 2; }, "this worker is in step 0"},
    {"Gap", [](auto& frame) { frame.header.sequence = 1; }, "expected slice 0 first"},
    {"Confirmed", [](auto& frame) { frame.header.confirmed = 9; }, "confirms the slices before 9"},
};

class BadFrames : public ::testing::TestWithParam<BadFrame> {};

TEST_P(BadFrames, NameBothWorkersAndChangeNothing) {
  WorkerGroup group(kRing);
  for (uint32_t i = 0; i < 3; ++i) {
    group.fill(i, 0, static_cast<float>(i + 1));
    ASSERT_TRUE(group.start(i).ok());
  }
  exchange::Send frame = group.inbox(1).front();
  GetParam().change(frame);
  const absl::Status status = group.deliver(1, frame);
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("worker/1"), HasSubstr(GetParam().problem)));
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().name == "Source" ? "worker/2" : "worker/0"));
  EXPECT_TRUE(group.actions.refused.ok());
  EXPECT_TRUE(group.deliver_all().ok());
  for (uint32_t i = 0; i < 3; ++i) EXPECT_THAT(group.values(i), Each(6.0f));
  EXPECT_TRUE(group.idle());
}
INSTANTIATE_TEST_SUITE_P(All, BadFrames, ::testing::ValuesIn(kBadFrames),
                         [](const auto& tested) { return tested.param.name; });

TEST(ExecutorFrames, OtherJobOrSender) {
  WorkerGroup group(kRing);
  ASSERT_TRUE(group.start(0).ok());
  exchange::Send frame = group.take_next(1);
  const auto message = [&](uint32_t sender, const wire::Header& header) {
    return std::string(group[1].on_frame(sender, header, frame.payload, group.now, group.actions).message());
  };
  EXPECT_THAT(message(2, frame.header), HasSubstr("worker/1 expected a frame of job 7 from member 2"));
  frame.header.sender = 1;
  EXPECT_THAT(message(1, frame.header), HasSubstr("from member 1, another of the 3 workers"));
  frame.header.sender = 3;
  EXPECT_THAT(message(3, frame.header), HasSubstr("got one of job 7 from member 3"));
  frame.header.sender = 0;
  frame.header.job = 8;
  EXPECT_THAT(message(0, frame.header), HasSubstr("got one of job 8 from member 0"));
}

TEST(ExecutorFrames, BeforeAnyPlan) {
  WorkerGroup group(kRing);
  executor::Executor executor({.job = kJob, .worker = 1}, &group.pool, &group.kernels);
  EXPECT_TRUE(absl::IsFailedPrecondition(executor.on_frame(0, {}, {}, group.now, group.actions)));
}

// Worker 0 repeats its first slice with later numbers. Worker 1 has not begun, so the slices wait.
TEST(ExecutorFrames, MoreSlicesThanReceives) {
  WorkerGroup group(kRing);
  ASSERT_TRUE(group.start(0).ok());
  exchange::Send frame = group.take_next(1);
  for (uint32_t i = 0; i < 4; ++i) {
    frame.header.sequence = i;
    EXPECT_TRUE(group.deliver(1, frame).ok());
  }
  frame.header.sequence = 4;
  EXPECT_THAT(std::string(group.deliver(1, frame).message()), HasSubstr("has no further message between them"));
  frame.header.step = 1;
  EXPECT_THAT(std::string(group.deliver(1, frame).message()), HasSubstr("this worker has not begun step 0"));
}

TEST(ExecutorFrames, EarlierStep) {
  WorkerGroup group(kRing);
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(group.start(i).ok());
  exchange::Send frame = group.inbox(1).front();
  ASSERT_TRUE(group.deliver_all().ok());
  frame.header.sequence = 4;
  EXPECT_THAT(std::string(group.deliver(1, frame).message()), HasSubstr("has ended the steps before 1"));
}

TEST(ExecutorFrames, EarlySlicesNameAnotherOp) {
  WorkerGroup group(kRing);
  ASSERT_TRUE(group.start(0, 0, ReduceOp::kAverage).ok());
  ASSERT_TRUE(group.deliver_next(1).ok());
  const absl::Status status = group.start(1, 0, ReduceOp::kSum);
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("tensor 't0': in its 1st push_pull worker 0 asks for its average, worker 1 for "
                         "its sum; "));
  EXPECT_EQ(group.actions.refused, status);
}

TEST(ExecutorFrames, SlicesOfAnotherOp) {
  WorkerGroup group(kRing);
  for (uint32_t i = 0; i < 2; ++i) ASSERT_TRUE(group.start(i).ok());
  exchange::Send frame = group.inbox(1).front();
  frame.header.op = ReduceOp::kAverage;
  const absl::Status status = group.deliver(1, frame);
  EXPECT_EQ(status.code(), kInvalid);
  EXPECT_THAT(std::string(status.message()),
              StartsWith("tensor 't0': in its 1st push_pull worker 0 asks for its average, worker 1 for "
                         "its sum; "));
  EXPECT_EQ(group.actions.refused, status) << "no worker can go on";
}

}  // namespace
}  // namespace gleaner::testing
