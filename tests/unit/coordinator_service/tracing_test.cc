// Tests of a coordinator's part in traces, message by message: observers, and members that leave meanwhile.
#include <gtest/gtest.h>

#include "tests/unit/coordinator_service/raw_member.h"

namespace gleaner::coordinator {
namespace {

v1::Identity observer(const std::string& job) {
  v1::Identity identity;
  identity.set_job(job);
  identity.set_role(v1::ROLE_OBSERVER);
  return identity;
}

v1::MemberMessage observe(v1::TraceOrder order, uint32_t seat = 0) {
  v1::MemberMessage message;
  message.mutable_observe()->set_order(order);
  message.mutable_observe()->set_seat(seat);
  return message;
}

v1::MemberMessage leave() {
  v1::MemberMessage message;
  message.mutable_leave()->set_epoch(1);
  return message;
}

class TracingTest : public testing::Test {
 protected:
  TracingTest() : system_({"test", LogLevel::kOff}) {
    Service::ServiceOptions options;
    options.listen = {"127.0.0.1", 0};
    service_ = *Service::start(system_.env(), options);
    EXPECT_EQ(service_->add(job_), absl::OkStatus());
    worker_ = join(worker(job_.options.job));
    EXPECT_TRUE(worker_->follow_plan());
  }
  std::unique_ptr<RawMember> join(const v1::Identity& identity) {
    auto member = std::make_unique<RawMember>(service_->address());
    member->join(identity, job_.token);
    return member;
  }
  std::unique_ptr<RawMember> recording_observer() {
    auto found = join(observer(job_.options.job));
    EXPECT_TRUE(found->await_welcome().has_value());
    found->write(observe(v1::TRACE_ORDER_RECORD));
    EXPECT_TRUE(found->read()->observed().begun());
    return found;
  }
  std::optional<absl::Status> outcome() { return service_->state(job_.options.job)->outcome; }

  SystemEnv system_;
  const Service::JobOptions job_ = token_job("j");
  std::unique_ptr<Service> service_;
  std::unique_ptr<RawMember> worker_;
};

TEST_F(TracingTest, AWelcomeProvesTheCoordinatorAndContainsNoSecret) {
  const auto one = join(observer("j"));
  const auto welcome = one->await_welcome();
  ASSERT_TRUE(welcome.has_value());
  EXPECT_TRUE(proto::check_proof(welcome->proof(), job_.token, proto::Prover::kCoordinator, one->challenge().nonce(),
                                 std::string(proto::kNonceBytes, 'm'), welcome->job_nonce()));
  EXPECT_EQ(welcome->secret(), "");
  EXPECT_EQ(service_->state("j")->members.size(), 1u) << "an observer is no member";
}

TEST_F(TracingTest, AMemberThatEndsWhileItsGoodbyeIsHeldBackHasLeft) {
  const auto watching = recording_observer();
  worker_->write(leave());
  EXPECT_TRUE(watching->read()->observed().ending());
  EXPECT_FALSE(outcome().has_value());
  worker_->cancel();
  ASSERT_TRUE(eventually([this] { return outcome().has_value(); }));
  EXPECT_EQ(*outcome(), absl::OkStatus());
  EXPECT_EQ(watching->end().error_message(), "the job has ended");
}

TEST_F(TracingTest, NoMemberIsHeldBackAfterTheObserverIsGone) {
  auto watching = recording_observer();
  worker_->write(leave());
  EXPECT_TRUE(watching->read()->observed().ending());
  watching.reset();
  ASSERT_TRUE(eventually([this] { return outcome().has_value(); }));
  EXPECT_EQ(*outcome(), absl::OkStatus());
}

TEST_F(TracingTest, ASummerMayBeLostWhileItsGoodbyeIsHeldBack) {
  const auto leaving = join(summer("j", 0));
  EXPECT_TRUE(leaving->await_welcome().has_value());
  const auto watching = recording_observer();
  leaving->write(leave());
  EXPECT_TRUE(watching->read()->observed().ending());
  service_->ended("j", Role::kSummer, 0, absl::UnavailableError("it was killed"));
  EXPECT_EQ(leaving->end().error_code(), grpc::StatusCode::ABORTED);
  worker_->write(leave());
  ASSERT_TRUE(eventually([this] { return outcome().has_value(); }));
  EXPECT_EQ(*outcome(), absl::OkStatus());
}

TEST_F(TracingTest, AMemberThatFailsIsNotHeldBack) {
  const auto watching = recording_observer();
  v1::MemberMessage failed = leave();
  failed.mutable_leave()->mutable_status()->set_code(static_cast<int>(absl::StatusCode::kAborted));
  worker_->write(failed);
  ASSERT_TRUE(eventually([this] { return outcome().has_value(); }));
  EXPECT_FALSE(outcome()->ok());
}

TEST_F(TracingTest, AnswersToAnEarlierObserverAreDropped) {
  auto first = recording_observer();
  const auto order = worker_->read();
  ASSERT_TRUE(order.has_value() && order->has_trace());
  first.reset();
  EXPECT_EQ(worker_->read()->trace().order(), v1::TRACE_ORDER_FORGET);
  const auto second = recording_observer();
  const auto next = worker_->read();
  ASSERT_NE(next->trace().recording(), order->trace().recording());
  v1::MemberMessage stale, fresh;
  stale.mutable_traced()->set_recording(order->trace().recording());
  fresh.mutable_traced()->set_recording(next->trace().recording());
  worker_->write(stale);
  worker_->write(fresh);
  EXPECT_EQ(second->read()->observed().part().traced().recording(), next->trace().recording());
}

TEST_F(TracingTest, AWrongMessageOfAnObserverEndsOnlyItsStream) {
  const auto watching = recording_observer();
  watching->write(observe(v1::TRACE_ORDER_SEND, 7));
  EXPECT_EQ(watching->end().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const auto another = recording_observer();
  another->write(leave());
  EXPECT_EQ(another->end().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_FALSE(outcome().has_value());
}

}  // namespace
}  // namespace gleaner::coordinator
