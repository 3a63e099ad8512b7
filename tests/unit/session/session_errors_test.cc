// Tests of frames that violate the protocol: the session returns an error that names the violation, and its state does
// not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>

#include "tests/status_codes.h"
#include "tests/unit/session/session_rig.h"

namespace gleaner::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using wire::FrameType;

struct BadFrame {
  const char* name;
  std::function<void(wire::Header&, Buffer&)> spoil;  // changes a valid result of tensor 0 partition 0 from owner 2
  absl::StatusCode code;
  const char* message;
};

void PrintTo(const BadFrame& frame, std::ostream* out) { *out << frame.name; }

class SessionErrors : public ::testing::TestWithParam<BadFrame> {};

TEST_P(SessionErrors, IsRefusedAndChangesNothing) {
  SessionRig rig({.tensors = {{.owners = {2, 0}}, {.owners = {2}}}});
  std::ranges::fill(rig.memory_of(0), std::byte{0x42});
  ASSERT_TRUE(rig.start(0).ok());
  wire::Header header = rig.header(FrameType::kResult, {});
  header.payload_bytes = 8;
  Buffer payload = rig.pool.take(8);
  GetParam().spoil(header, payload);
  rig.clear();
  const absl::Status status = rig.session.on_frame(2, header, std::move(payload), rig.now, rig.actions);
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr(GetParam().message));
  EXPECT_THAT(rig.actions.sends, IsEmpty());
  EXPECT_EQ(rig.memory_of(0)[0], std::byte{0x42});

  ASSERT_TRUE(rig.result({0, 0}).ok());
  ASSERT_TRUE(rig.result({0, 1}).ok());
  EXPECT_THAT(rig.done(), ElementsAre(100));
}

INSTANTIATE_TEST_SUITE_P(
    , SessionErrors,
    ::testing::Values(
        BadFrame{"Size", [](wire::Header&, Buffer& b) { b = b.slice(0, 4); }, kInvalid, "4 bytes"},
        BadFrame{"HeaderSize", [](wire::Header& h, Buffer&) { h.payload_bytes = 4; }, kInvalid, "header: 4"},
        BadFrame{"Type", [](wire::Header& h, Buffer&) { h.data_type = DataType::kInt32; }, kInvalid, "as int32"},
        BadFrame{"Op", [](wire::Header& h, Buffer&) { h.op = ReduceOp::kAverage; }, kInvalid, "op 2"},
        BadFrame{"Tensor", [](wire::Header& h, Buffer&) { h.tensor = 2; }, kInvalid, "names tensor 2"},
        BadFrame{"Partition", [](wire::Header& h, Buffer&) { h.partition = 2; }, kInvalid, "partition 2"},
        BadFrame{"Owner", [](wire::Header& h, Buffer&) { h.partition = 1; }, kInvalid, "whose owner is worker/0"},
        BadFrame{"Sender", [](wire::Header& h, Buffer&) { h.sender = 0; }, kInvalid, "from member 0"},
        BadFrame{"Job", [](wire::Header& h, Buffer&) { h.job = 8; }, kInvalid, "of job 8"},
        BadFrame{"Step", [](wire::Header& h, Buffer&) { h.step = 1; }, kWrongTime, "step 1"},
        BadFrame{"NeverPushed", [](wire::Header& h, Buffer&) { h.tensor = 1; }, kWrongTime, "has not pushed"},
        BadFrame{"FrameType", [](wire::Header& h, Buffer&) { h.type = FrameType::kPush; }, kInvalid,
                 "expected RESULT, DEFER, FETCH, RELEASE, REFUSE or COMMITTED"},
        BadFrame{"DeferWithPayload", [](wire::Header& h, Buffer&) { h.type = FrameType::kDefer; }, kInvalid,
                 "expected 0"},
        BadFrame{
            "DeferOfWhatWasNotPushed",
            [](wire::Header& h, Buffer& b) { h.type = FrameType::kDefer, h.step = 1, h.payload_bytes = 0, b = {}; },
            kWrongTime, "has not pushed"}),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(SessionRefused, ReturnsTheOwnersReason) {
  SessionRig rig({.tensors = {{.owners = {2}}}});
  ASSERT_TRUE(rig.start(0).ok());
  const std::string text = "tensor 't0': worker 0 asks for its sum, worker 1 for its average";
  Buffer payload = rig.pool.take(text.size());
  std::memcpy(payload.bytes().data(), text.data(), text.size());
  ASSERT_TRUE(rig.deliver(rig.header(FrameType::kRefuse, {}), std::move(payload)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(rig.actions.refused));
  EXPECT_EQ(rig.actions.refused.message(), text);
  EXPECT_THAT(rig.actions.done, IsEmpty());
}

TEST(SessionOutOfTurn, ResultBeforePush) {
  SessionRig rig({.tensors = {{.owners = {2, 2}}}}, 8);
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_EQ(rig.result({0, 1}).code(), kWrongTime);
  ASSERT_TRUE(rig.result({0, 0}).ok());
  ASSERT_TRUE(rig.result({0, 1}).ok());
}

TEST(SessionEpochs, OwnerMayBeAhead) {
  SessionRig rig({.epoch = 5, .tensors = {{.owners = {2}, .since = 4}}});
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_TRUE(rig.result({}, {}, 6).ok());
  EXPECT_THAT(rig.done(), ElementsAre(100));
}

TEST(SessionEpochs, DropsEarlierOwnersResults) {
  SessionRig rig({.epoch = 5, .tensors = {{.owners = {2}, .since = 4}}});
  ASSERT_TRUE(rig.start(0).ok());
  EXPECT_TRUE(rig.result({}, {}, 3).ok());
  EXPECT_THAT(rig.done(), IsEmpty());
  EXPECT_TRUE(rig.result({}, {}, 4).ok());
  EXPECT_THAT(rig.done(), ElementsAre(100));
}

}  // namespace
}  // namespace gleaner::testing
