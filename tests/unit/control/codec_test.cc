// Tests that every message between members and the coordinator arrives as it was sent, and that decoding checks it.
#include "common/control/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <variant>

#include "common/plan/partitioner.h"
#include "common/proto/plan_codec.h"

namespace gleaner::control {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const absl::Status kWhy = absl::UnavailableError("worker 1 is lost");

std::shared_ptr<const plan::Plan> plan() {
  plan::Plan plan = *plan::make_plan({{1e9, 1e9}, {}}, {{"w", 1000, DataType::kFloat32, 0}}, {});
  plan.epoch = 3;
  return std::make_shared<const plan::Plan>(std::move(plan));
}

Report report() {
  Report report{7, 700, 0.5};
  report.waiting = Waiting{"w", 4, absl::Seconds(2.5), {3, 1}};
  report.measured = {{1, 2, 200, 10, 0.25, 180, 2, -5}, {2, 3, 300, 20, 0.125, 270, 6, 810}};
  report.round_trip_seconds = 0.0625;
  report.overhead_seconds = 0.03125;
  report.link_bits_per_second = 2.5e9;
  report.epoch = 2;
  report.late = {{2, 1.5}, {3, 0.75}};
  report.workers_late_seconds = 0.375;
  report.step_bytes = 90;
  report.saved_bytes = 270;
  report.packs = {std::numeric_limits<double>::infinity(), 0.25, 0.5};
  return report;
}

// Sends each message over the wire and compares. Then checks that there was a message of every kind.
template <typename Message>
void expect_round_trips(const std::vector<Message>& messages) {
  std::set<size_t> kinds;
  for (const Message& message : messages) {
    const auto encoded = encode(message);
    const absl::StatusOr<Message> decoded = decode(encoded);
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(decoded->index(), message.index());
    EXPECT_TRUE(*decoded == message) << "a message of kind " << message.index() << " has changed";
    kinds.insert(message.index());
  }
  EXPECT_THAT(kinds, SizeIs(std::variant_size_v<Message>)) << "a kind of message has no example";
}

TEST(Codec, MessagesOfMembersArriveUnchanged) {
  expect_round_trips<MemberMessage>({
      Heartbeat{},
      Declare{{{"w", 10, DataType::kFloat32, -2}}, {{"w", ReduceOp::kAverage}}},
      Acknowledgement{3},
      Refusal{4, kWhy},
      report(),
      Report{},
      Begun{"w", 5},
      PushPulls{3, {7, 0, uint64_t{1} << 40}},
      Fault{2, 3, kWhy},
      Leave{absl::OkStatus(), 3, false},
      Leave{kWhy, 4, true},
      Recalled{plan()},
  });
}

TEST(Codec, MessagesOfTheCoordinatorArriveUnchanged) {
  expect_round_trips<CoordinatorMessage>({
      Heartbeat{},
      Recall{},
      Prepare{plan()},
      Commit{3},
      Withdraw{4},
      CountPushPulls{},
      Ending{},
      Ending{.left = {0, 3}},
      Failed{kWhy},
      Regroup{kWhy},
      Newcomers{2},
      Inquire{"w"},
      Trace{TraceOrder::kRecord, 1},
      Trace{TraceOrder::kStop, 2},
      Trace{TraceOrder::kSend, 3},
      Trace{TraceOrder::kForget, 4},
      Finished{},
      Goodbye{},
  });
}

TEST(Codec, InvalidPlansAreErrors) {
  v1::CoordinatorMessage prepare;
  prepare.mutable_prepare()->mutable_plan()->set_epoch(4);
  EXPECT_TRUE(absl::IsInvalidArgument(decode(prepare).status()));
  v1::MemberMessage recalled;
  recalled.mutable_recalled()->mutable_plan()->set_epoch(4);
  EXPECT_TRUE(absl::IsInvalidArgument(decode(recalled).status()));
}

TEST(Codec, InvalidTensorNamesAreErrors) {
  v1::MemberMessage declare;
  declare.mutable_declare()->add_tensors()->set_name("");
  EXPECT_TRUE(absl::IsInvalidArgument(decode(declare).status()));
  declare.mutable_declare()->clear_tensors();
  declare.mutable_declare()->add_operations()->set_tensor("a\nb");
  EXPECT_TRUE(absl::IsInvalidArgument(decode(declare).status()));
  v1::MemberMessage waiting = encode(MemberMessage(report()));
  waiting.mutable_report()->mutable_waiting()->set_tensor(std::string(plan::kMaxTensorNameBytes + 1, 'w'));
  EXPECT_THAT(decode(waiting).status().message(), HasSubstr("a tensor's name"));
}

TEST(Codec, ImpossibleTimesInReportsBecomeZero) {
  for (const double time : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    Report sent = report();
    sent.communication_seconds = sent.round_trip_seconds = sent.workers_late_seconds = time;
    sent.overhead_seconds = sent.link_bits_per_second = time;
    sent.packs->seconds = sent.packs->seconds_without_packs = time;
    sent.measured[0].communication_seconds = sent.late[0].seconds = time;
    Report expected = report();
    expected.communication_seconds = expected.round_trip_seconds = expected.workers_late_seconds = 0;
    expected.overhead_seconds = expected.link_bits_per_second = 0;
    expected.packs->seconds = expected.packs->seconds_without_packs = 0;
    expected.measured[0].communication_seconds = expected.late[0].seconds = 0;
    EXPECT_EQ(std::get<Report>(*decode(encode(MemberMessage(sent)))), expected) << time;
  }
}

TEST(Codec, ListsInReportsAreCut) {
  Report sent = report();
  sent.measured.resize(65);
  sent.late.resize(plan::kMaxMembers + 1);
  const Report received = std::get<Report>(*decode(encode(MemberMessage(sent))));
  EXPECT_THAT(received.measured, SizeIs(64));
  EXPECT_THAT(received.late, SizeIs(plan::kMaxMembers));
}

TEST(Codec, MembersMustNotJoinTwiceOrObserve) {
  v1::MemberMessage message;
  message.mutable_join();
  EXPECT_THAT(decode(message).status().message(), HasSubstr("a second Join"));
  message.mutable_observe();
  EXPECT_THAT(decode(message).status().message(), HasSubstr("of an observer"));
}

TEST(Codec, MessagesOfLaterVersionsAreHeartbeats) {
  EXPECT_TRUE(std::holds_alternative<Heartbeat>(*decode(v1::MemberMessage())));
  v1::CoordinatorMessage message;
  EXPECT_TRUE(std::holds_alternative<Heartbeat>(*decode(message)));
  message.mutable_trace()->set_order(static_cast<v1::TraceOrder>(99));
  EXPECT_TRUE(std::holds_alternative<Heartbeat>(*decode(message)));
}

}  // namespace
}  // namespace gleaner::control
