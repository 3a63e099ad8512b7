#include "common/member/action_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/plan/partitioner.h"
#include "common/proto/plan_codec.h"
#include "tests/unit/member/recording_listener.h"

namespace gleaner::member {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ActionExecutorTest : public testing::Test {
 protected:
  ActionExecutorTest() : system_({"test", LogLevel::kOff}) {
    options_.token = "0123456789abcdef";
    options_.coordinator = {"127.0.0.1", 1};  // no process listens there
  }
  absl::Duration now() const { return system_.env().clock->since_start(); }

  // Lets the member join and follow the plan of epoch 1.
  void begin_job(const std::string& session) {
    membership_.begin(now());
    membership_.on_challenged(now());
    Welcome welcome;
    welcome.member = 2;
    welcome.deadline = absl::Minutes(1);
    welcome.session = session;
    membership_.on_welcome(welcome, now());
    plan::Plan plan = *plan::make_plan({{1e9, 1e9}, {}}, {}, {});
    plan.epoch = 1;
    membership_.on_message(Prepare{std::make_shared<const plan::Plan>(plan)}, now());
    membership_.on_message(Commit{1}, now());
  }

  SystemEnv system_;
  JoinOptions options_;
  RecordingListener listener_;
  Membership membership_{{.coordinator = "here", .timeout = absl::Minutes(1)}, [] { return 1.0; }};
  Introduction introduction_{options_, system_.env().random};
  CoordinatorConnection connection_{options_};
  LeaveOutcome leave_outcome_;
  ActionExecutor executor_{system_.env(), options_.coordinator, &membership_,   &introduction_,
                           &connection_,  &listener_,           &leave_outcome_};
};

TEST_F(ActionExecutorTest, ConnectsAndDisconnects) {
  membership_.begin(now());
  executor_.run();
  EXPECT_TRUE(connection_.is_open());
  membership_.on_attempt_failed(absl::UnavailableError("no"), now());
  executor_.run();
  EXPECT_FALSE(connection_.is_open());
}

TEST_F(ActionExecutorTest, CallsTheListenerInOrder) {
  introduction_.on_challenge({proto::kProtocol});
  begin_job("s");
  executor_.run();
  EXPECT_THAT(listener_.calls, ElementsAre("welcome 2", "prepare 1", "commit 1"));
  listener_.calls.clear();
  membership_.on_closed(absl::UnavailableError("broken"), now());
  executor_.run();
  EXPECT_THAT(listener_.calls, ElementsAre("coordinator lost"));
}

TEST_F(ActionExecutorTest, FailuresReachTheListener) {
  introduction_.on_challenge({proto::kProtocol});
  begin_job("");
  executor_.run();
  listener_.calls.clear();
  membership_.on_closed(absl::UnavailableError("broken"), now());
  executor_.run();
  EXPECT_THAT(listener_.calls, ElementsAre("coordinator lost", "coordinator gone"));
}

TEST_F(ActionExecutorTest, CarriesOutFollowingActionsToo) {
  introduction_.on_challenge({proto::kProtocol + 1});
  membership_.begin(now());
  membership_.on_challenged(now());
  executor_.run();
  ASSERT_EQ(listener_.calls.size(), 1u) << "the challenge cannot be answered, so the membership fails";
  EXPECT_THAT(listener_.calls[0], testing::StartsWith("failed: "));
  EXPECT_THAT(membership_.take(), IsEmpty());
  EXPECT_TRUE(leave_outcome_.await()) << "a failed member need not leave";
}

TEST_F(ActionExecutorTest, ReportsThatALeavingMemberStays) {
  introduction_.on_challenge({proto::kProtocol});
  begin_job("s");
  plan::Plan next = *plan::make_plan({{1e9, 1e9}, {}}, {}, {});
  next.epoch = 2;
  membership_.leave(absl::OkStatus(), false, absl::Seconds(1), now());
  membership_.on_message(Prepare{std::make_shared<const plan::Plan>(next)}, now());
  membership_.on_message(Commit{2}, now());
  executor_.run();
  EXPECT_FALSE(leave_outcome_.await());
}

}  // namespace
}  // namespace gleaner::member
