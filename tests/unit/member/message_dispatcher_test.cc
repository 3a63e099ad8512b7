#include "common/member/message_dispatcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <variant>

#include "common/base/env.h"
#include "common/plan/partitioner.h"
#include "common/proto/plan_codec.h"
#include "common/proto/proof.h"
#include "tests/unit/member/recording_listener.h"

namespace gleaner::member {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr absl::Duration kDispatchTime = absl::Seconds(5);

class MessageDispatcherTest : public testing::Test {
 protected:
  MessageDispatcherTest() : system_({"test", LogLevel::kOff}) {
    options_.token = "0123456789abcdef";
    membership_.begin(kDispatchTime);
    membership_.take();
  }

  // Delivers a message, and returns the last action that follows, if any. Writes down all events.
  std::optional<Action> deliver(const v1::CoordinatorMessage& message) {
    dispatcher_.dispatch(message, kDispatchTime);
    const std::vector<Action> actions = membership_.take();
    for (const Action& action : actions) {
      if (const auto* event = std::get_if<Event>(&action)) listener_.on_event(*event);
    }
    return actions.empty() ? std::nullopt : std::optional(actions.back());
  }
  template <typename T>
  static bool is_event(const std::optional<Action>& action) {
    const auto* event = action.has_value() ? std::get_if<Event>(&*action) : nullptr;
    return event != nullptr && std::holds_alternative<T>(*event);
  }
  void challenge() {
    v1::CoordinatorMessage message;
    message.mutable_challenge()->set_protocol(proto::kProtocol);
    message.mutable_challenge()->set_nonce(nonce_);
    ASSERT_TRUE(std::holds_alternative<Introduce>(*deliver(message)));
    join_ = *introduction_.answer();
  }
  // Welcomes the member as a coordinator does that knows `token`.
  std::optional<Action> welcome(const std::string& token) {
    v1::CoordinatorMessage message;
    message.mutable_welcome()->set_member(1);
    message.mutable_welcome()->set_session("s");
    message.mutable_welcome()->set_deadline_seconds(10);
    message.mutable_welcome()->set_job_nonce("job");
    message.mutable_welcome()->set_proof(
        proto::make_proof(token, proto::Prover::kCoordinator, nonce_, join_.nonce, "job"));
    return deliver(message);
  }
  void admit() {
    challenge();
    ASSERT_TRUE(is_event<Welcome>(welcome(options_.token)));
    listener_.calls.clear();
  }

  SystemEnv system_;
  JoinOptions options_;
  RecordingListener listener_;
  Membership membership_{{.coordinator = "here", .timeout = absl::Minutes(1)}, [] { return 1.0; }};
  Introduction introduction_{options_, system_.env().random};
  MessageDispatcher dispatcher_{&membership_, &introduction_};
  const std::string nonce_ = std::string(proto::kNonceBytes, 'c');
  control::Join join_;
};

TEST_F(MessageDispatcherTest, AWelcomeWithAProofAdmitsTheMember) {
  admit();
  EXPECT_TRUE(membership_.is_admitted());
}

TEST_F(MessageDispatcherTest, AWelcomeWithoutAProofFails) {
  challenge();
  const std::optional<Action> last = welcome("another token");
  ASSERT_TRUE(is_event<Failed>(last));
  EXPECT_TRUE(absl::IsPermissionDenied(std::get<Failed>(std::get<Event>(*last)).status));
}

TEST_F(MessageDispatcherTest, OtherMessagesAreIgnoredBeforeTheWelcome) {
  v1::CoordinatorMessage message;
  message.mutable_inquire()->set_tensor("t");
  EXPECT_EQ(deliver(message), std::nullopt);
  EXPECT_THAT(listener_.calls, IsEmpty());
  admit();
  deliver(message);
  EXPECT_THAT(listener_.calls, ElementsAre("inquired t"));
}

TEST_F(MessageDispatcherTest, MessagesReachTheListener) {
  admit();
  v1::CoordinatorMessage message;
  message.mutable_newcomers()->set_workers(3);
  deliver(message);
  message.mutable_ending();
  deliver(message);
  message.mutable_trace()->set_order(v1::TRACE_ORDER_SEND);
  message.mutable_trace()->set_recording(7);
  deliver(message);
  message.mutable_trace()->set_order(static_cast<v1::TraceOrder>(99));  // of a later version
  deliver(message);
  EXPECT_THAT(listener_.calls, ElementsAre("newcomers 3", "ending", "trace 2 7"));
}

TEST_F(MessageDispatcherTest, PlansArePreparedAndCommitted) {
  admit();
  plan::Plan plan = *plan::make_plan({{1e9, 1e9}, {}}, {}, {});
  plan.epoch = 1;
  v1::CoordinatorMessage message;
  proto::encode(plan, message.mutable_prepare()->mutable_plan());
  std::optional<Action> last = deliver(message);
  ASSERT_TRUE(is_event<Prepare>(last));
  message.mutable_commit()->set_epoch(1);
  last = deliver(message);
  ASSERT_TRUE(is_event<Commit>(last));
}

TEST_F(MessageDispatcherTest, AMalformedPlanIsRefused) {
  admit();
  v1::CoordinatorMessage message;
  message.mutable_prepare()->mutable_plan()->set_epoch(4);
  const std::optional<Action> last = deliver(message);
  ASSERT_TRUE(last.has_value() && std::holds_alternative<control::MemberMessage>(*last));
  EXPECT_EQ(std::get<Refusal>(std::get<control::MemberMessage>(*last)).epoch, 4u);
}

TEST_F(MessageDispatcherTest, AFailureMayEndTheRoundAndNothingFollowsTheEnd) {
  admit();
  v1::CoordinatorMessage message;
  proto::encode(absl::UnavailableError("worker 0 is lost"), message.mutable_failed()->mutable_status());
  message.mutable_failed()->set_again(true);
  const std::optional<Action> last = deliver(message);
  ASSERT_TRUE(is_event<Regroup>(last));
  EXPECT_EQ(std::get<Regroup>(std::get<Event>(*last)).why, absl::UnavailableError("worker 0 is lost"));
  message.mutable_goodbye();
  deliver(message);
  EXPECT_TRUE(membership_.is_over());
  message.mutable_inquire()->set_tensor("t");
  deliver(message);
  EXPECT_THAT(listener_.calls, ElementsAre("regroup: worker 0 is lost")) << "no event follows the end";
}

}  // namespace
}  // namespace gleaner::member
