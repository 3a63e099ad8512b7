// Tests of frames that violate the protocol: the engine returns an error that names the violation, and its state does
// not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "tests/status_codes.h"
#include "tests/unit/engine/engine_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct BadFrame {
  const char* name;
  std::function<void(wire::Header&, Buffer&)> spoil;  // changes a valid push of worker 0
  absl::StatusCode code;
  const char* message;
};

void PrintTo(const BadFrame& frame, std::ostream* out) { *out << frame.name; }

class EngineErrors : public ::testing::TestWithParam<BadFrame> {};

TEST_P(EngineErrors, IsRefusedAndChangesNothing) {
  EngineRig rig({.tensors = {{.owners = {2, 0}}, {.owners = {2}, .type = DataType::kInt32}}});
  ASSERT_TRUE(rig.take_plan().ok());
  rig.actions.clear();
  wire::Header header = rig.header(wire::FrameType::kPush, 0, {});
  header.payload_bytes = 8;
  Buffer payload = rig.payload(std::vector<float>{9, 9});
  GetParam().spoil(header, payload);
  const absl::Status status = rig.engine.on_frame(0, header, std::move(payload), rig.actions);
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  if (absl::IsInvalidArgument(status)) {
    ASSERT_THAT(rig.receivers(wire::FrameType::kRefuse), ElementsAre(0))
        << "the worker learns that the refusal is final";
    const ConstBytes text = rig.actions.sends[0].payload.bytes();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(text.data()), text.size()), status.message());
    rig.actions.clear();
  }
  EXPECT_TRUE(rig.actions.sends.empty());
  EXPECT_EQ(rig.engine.counters().contributions, 0u);
  EXPECT_EQ(rig.engine.counters().memory_bytes, 0u);
  EXPECT_EQ(rig.pool.bytes_in_use(), 0u);

  ASSERT_TRUE(rig.push(0, {}, {1, 2}).ok());
  ASSERT_TRUE(rig.push(1, {}, {1, 2}).ok());
  EXPECT_THAT(rig.values_sent(0), ElementsAre(2, 4));
}

INSTANTIATE_TEST_SUITE_P(
    , EngineErrors,
    ::testing::Values(
        BadFrame{"Size", [](wire::Header&, Buffer& b) { b = b.slice(0, 4); }, kInvalid,
                 "worker/0 sent PUSH of 4 bytes"},
        BadFrame{"HeaderSize", [](wire::Header& h, Buffer&) { h.payload_bytes = 4; }, kInvalid, "header: 4"},
        BadFrame{"Empty", [](wire::Header& h, Buffer& b) { h.payload_bytes = 0, b = {}; }, kInvalid, "0 bytes"},
        BadFrame{"Type", [](wire::Header& h, Buffer&) { h.data_type = DataType::kInt32; }, kInvalid, "which is fp32"},
        BadFrame{"Op", [](wire::Header& h, Buffer&) { h.op = static_cast<ReduceOp>(9); }, kInvalid, "op 9"},
        BadFrame{
            "AverageOfIntegers",
            [](wire::Header& h, Buffer&) { h.tensor = 1, h.data_type = DataType::kInt32, h.op = ReduceOp::kAverage; },
            kInvalid, "int32 has no such op"},
        BadFrame{"Tensor", [](wire::Header& h, Buffer&) { h.tensor = 2; }, kInvalid, "2 tensors"},
        BadFrame{"Partition", [](wire::Header& h, Buffer&) { h.partition = 2; }, kInvalid, "2 partitions"},
        BadFrame{"Owner", [](wire::Header& h, Buffer&) { h.partition = 1; }, kInvalid, "its owner is worker/0"},
        BadFrame{"Sender", [](wire::Header& h, Buffer&) { h.sender = 1; }, kInvalid, "from member 1"},
        BadFrame{"Job", [](wire::Header& h, Buffer&) { h.job = 8; }, kInvalid, "of job 8"},
        BadFrame{"Epoch", [](wire::Header& h, Buffer&) { h.epoch = 2; }, kWrongTime, "epoch 2"},
        BadFrame{"Step", [](wire::Header& h, Buffer&) { h.step = 1; }, kWrongTime, "step 0 is not summed"},
        BadFrame{"FrameType", [](wire::Header& h, Buffer&) { h.type = wire::FrameType::kResult; }, kInvalid,
                 "expected PUSH, ACK, HAND or RELEASE"},
        BadFrame{"AckSize", [](wire::Header& h, Buffer&) { h.type = wire::FrameType::kAck; }, kInvalid,
                 "multiple of 16"}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(EngineOutsiders, RefusesFramesOfOthers) {
  EngineRig rig({.tensors = {{.owners = {2}}}});
  ASSERT_TRUE(rig.take_plan().ok());
  EXPECT_EQ(rig.push(2, {}, {1, 2}).code(), kInvalid);
}

TEST(EngineOutsiders, RefusesFrameBeforePlan) {
  EngineRig rig({.tensors = {{.owners = {2}}}});
  EXPECT_EQ(rig.push(0, {}, {1, 2}).code(), kWrongTime);
}

}  // namespace
}  // namespace gleaner::testing
