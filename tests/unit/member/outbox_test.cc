#include "common/member/outbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gleaner::member {
namespace {

using control::Heartbeat;
using control::MemberMessage;
using control::Report;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::Duration kSendTime = absl::Seconds(100);
constexpr absl::Duration kHeartbeat = absl::Seconds(1);

TEST(Outbox, HeldBackMessagesComeOutOnceInOrder) {
  Outbox outbox(kHeartbeat);
  outbox.hold_back(control::Acknowledgement{1});
  outbox.hold_back(control::Begun{"w", 2});
  EXPECT_THAT(outbox.take_held_back(),
              ElementsAre(MemberMessage(control::Acknowledgement{1}), MemberMessage(control::Begun{"w", 2})));
  EXPECT_THAT(outbox.take_held_back(), IsEmpty());
  outbox.hold_back(control::Acknowledgement{2});
  outbox.forget_held_back();
  EXPECT_THAT(outbox.take_held_back(), IsEmpty());
}

TEST(Outbox, AHeartbeatIsDueAfterSilence) {
  Outbox outbox(kHeartbeat);
  outbox.on_sent(kSendTime);
  EXPECT_EQ(outbox.take_due(kSendTime + absl::Milliseconds(999)), std::nullopt);
  EXPECT_EQ(outbox.take_due(kSendTime + kHeartbeat), MemberMessage(Heartbeat{}));
}

TEST(Outbox, TheLastReportReplacesAHeartbeatOnce) {
  Outbox outbox(kHeartbeat);
  outbox.report(Report{1});
  outbox.report(Report{2});
  EXPECT_EQ(outbox.take_due(kSendTime), MemberMessage(Report{2}));
  EXPECT_EQ(outbox.take_due(kSendTime), MemberMessage(Heartbeat{}));
  EXPECT_EQ(outbox.take_report(), std::nullopt);
}

TEST(Outbox, AnotherCoordinatorGetsTheLastReportAgain) {
  Outbox outbox(kHeartbeat);
  outbox.report(Report{2});
  EXPECT_EQ(outbox.take_report(), Report{2});
  outbox.repeat_report();
  EXPECT_EQ(outbox.take_report(), Report{2});
}

}  // namespace
}  // namespace gleaner::member
