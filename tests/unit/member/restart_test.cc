// Tests of members whose coordinator ends and starts again on the same port, over real gRPC.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/proto/coordinator.grpc.pb.h"
#include "common/proto/plan_codec.h"
#include "coordinator/service/service.h"
#include "tests/jumping_clock.h"
#include "tests/unit/member/restart.h"
#include "tests/unit/network/proxy.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(RestartTest, TheJobContinuesUnderTheNextCoordinator) {
  begin();
  const wire::Secret secret = members_[0]->await_welcome()->secret;
  for (int times = 1; times <= 2; ++times) {
    kill();
    for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_lost());
    start_job();
    for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_found(times));
  }
  declare_all("b");
  await_all(3);
  const auto plan = members_[2]->await_epoch(3);
  ASSERT_EQ(plan->tensors.size(), 2u);
  EXPECT_EQ(plan->tensors[0].name, "a");
  for (const auto& member : members_) EXPECT_EQ(member->welcomes(), 1) << "members joined only once";
  EXPECT_EQ(members_[0]->await_welcome()->secret, secret);

  members_[0]->client().report({10, 40000, 0.5});
  members_[0]->leave();
  members_[1]->leave();
  EXPECT_TRUE(members_[2]->await_finished());
  EXPECT_TRUE(await_outcome(absl::OkStatus()));
  EXPECT_EQ(service_->state("default")->summary.whole.steps, 10u);
}

TEST_F(RestartTest, TensorsDeclaredMeanwhileArePlanned) {
  begin();
  kill();
  EXPECT_TRUE(members_[0]->await_coordinator_lost());
  declare_all("b");
  start_job();
  await_all(3);
}

TEST_F(RestartTest, BeforeTheFirstPlanMembersJoinAgain) {
  start_job(false);
  members_.push_back(join(1));
  ASSERT_TRUE(members_[0]->await_welcome().has_value());
  kill();
  start_job();
  members_.push_back(join(0));
  members_.push_back(join(2));
  await_all(1);
}

TEST_F(RestartTest, MembersMayConnectBeforeTheJobIsAdded) {
  start();
  std::vector<std::unique_ptr<network::Proxy>> ways;
  for (uint32_t member = 0; member < 3; ++member) {
    ways.push_back(std::make_unique<network::Proxy>());
    ways.back()->forward_to(service_->address());
    address_ = ways.back()->address();
    members_.push_back(join(member));
  }
  for (const auto& way : ways) {
    EXPECT_TRUE(eventually([&] { return way->connections() >= 2; })) << "a member that is turned away tries again";
  }
  job_.may_resume = false;
  ASSERT_EQ(service_->add(job_), absl::OkStatus());
  await_all(1);
}

TEST_F(RestartTest, NeitherTrainingNorLeavingNeedsACoordinator) {
  begin();
  kill();
  EXPECT_TRUE(members_[0]->await_coordinator_lost());
  members_[0]->client().report({1, 4000, 0.1});
  members_[0]->leave(absl::Milliseconds(300));
  members_[0]->client().stop();
  EXPECT_FALSE(members_[0]->failed());

  start_job();
  EXPECT_TRUE(members_[1]->await_coordinator_found());
  service_->ended("default", coordinator::Role::kWorker, 0, absl::OkStatus());  // the launcher saw its process end well
  members_[1]->leave();
  EXPECT_TRUE(members_[2]->await_finished());
  EXPECT_TRUE(await_outcome(absl::OkStatus()));
}

TEST_F(RestartTest, AMemberLeavesUnderTheNextCoordinator) {
  begin();
  kill();
  for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_lost());
  std::thread leaver([this] { members_[0]->leave(); });
  start_job();
  leaver.join();
  members_[1]->leave();
  EXPECT_TRUE(members_[2]->await_finished());
}

TEST_F(RestartTest, ATensorThatWaitsTooLongFailsTheJobWithAdvice) {
  job_.options.workers = 1;
  job_.options.summers = 0;
  start_job(false);
  JumpingClock clock(system_.env().clock);
  Env env = system_.env();
  env.clock = &clock;
  member::JoinOptions options = worker_options(0);
  options.plan_timeout = absl::Hours(1);
  Participant zero(env, options);
  ASSERT_NE(zero.await_epoch(1), nullptr);
  kill();
  EXPECT_TRUE(zero.await_coordinator_lost());
  clock.jump(absl::Hours(2));
  EXPECT_FALSE(zero.failed()) << "only the tensor fails, and not the member";
  zero.client().declare({tensor("b")});
  EXPECT_TRUE(eventually([&] {
    clock.jump(absl::Hours(2));  // the first jump may come before the declaration
    return zero.failed();
  }));
  EXPECT_THAT(std::string(zero.await_failure().message()),
              AllOf(HasSubstr("tensor 'b'"), HasSubstr("for 1h"), HasSubstr(address_.to_string()),
                    HasSubstr("is out of reach: "), HasSubstr("GLEANER_PLAN_TIMEOUT")));
}

TEST_F(RestartTest, TheJobContinuesWithoutACoordinatorThatCannotResume) {
  begin();
  kill();
  start_job(false);
  for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_gone());
  EXPECT_FALSE(members_[0]->failed());
  members_[0]->client().declare({tensor("b")});
  EXPECT_THAT(std::string(members_[0]->await_failure().message()),
              AllOf(HasSubstr("tensor 'b'"), HasSubstr("can't take up a job")));
}

TEST_F(RestartTest, TheNextCoordinatorDetectsALostMember) {
  begin();
  kill();
  members_[2].reset();
  clock_ = &manual_clock_;
  job_.options.start_timeout = absl::Minutes(7);
  start_job();
  for (uint32_t worker = 0; worker < 2; ++worker) EXPECT_TRUE(members_[worker]->await_coordinator_found());
  manual_clock_.advance(absl::Minutes(8));
  EXPECT_THAT(std::string(members_[0]->await_failure().message()), HasSubstr("summer 0 did not come back within 7m"));
  EXPECT_THAT(std::string(members_[1]->await_failure().message()), HasSubstr("summer 0"));
}

TEST_F(RestartTest, ABrokenStreamToALivingCoordinatorIsReplaced) {
  clock_ = &manual_clock_;
  job_.options.summer_timeout = job_.options.return_timeout = absl::Hours(1000);
  begin();
  // The coordinator does not count a pause of its own, longer than half of the deadline, as a member's silence.
  EXPECT_TRUE(eventually([&] {
    manual_clock_.advance(job_.options.deadline / 20);
    return members_[0]->coordinators_found() > 0;
  }));
  declare_all("b");
  await_all(3);
}

// A coordinator's server that does not know the token.
class Usurper final : public v1::Coordinator::Service {
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::MemberMessage>* stream) override {
    v1::CoordinatorMessage message;
    message.mutable_challenge()->set_protocol(proto::kProtocol);
    message.mutable_challenge()->set_nonce(std::string(32, 'n'));
    stream->Write(message);
    v1::MemberMessage answer;
    stream->Read(&answer);
    message.mutable_recall();
    stream->Write(message);
    message.mutable_failed()->mutable_status()->set_code(1);
    stream->Write(message);
    message.mutable_finished();
    stream->Write(message);
    message.mutable_welcome()->set_session(answer.join().resume().session());
    message.mutable_welcome()->set_member(answer.join().resume().member());
    message.mutable_welcome()->set_proof(answer.join().proof());
    stream->Write(message);
    told_more = stream->Read(&answer) || told_more;
    ++visits;
    return {grpc::StatusCode::PERMISSION_DENIED, "who are you?"};
  }

 public:
  std::atomic<bool> told_more{false};
  std::atomic<int> visits{0};
};

TEST_F(RestartTest, ForeignClientsCannotEndOrTakeOverTheJob) {
  begin();
  kill();
  {
    Usurper usurper;
    const auto server = grpc::ServerBuilder()
                            .AddListeningPort(address_.to_string(), grpc::InsecureServerCredentials())
                            .RegisterService(&usurper)
                            .BuildAndStart();
    ASSERT_NE(server, nullptr);
    EXPECT_TRUE(eventually([&] { return usurper.visits > 3; }));
    EXPECT_FALSE(usurper.told_more);
  }
  for (const auto& member : members_) EXPECT_FALSE(member->failed());
  start_job();
  for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_found());
  declare_all("b");
  await_all(3);
}

}  // namespace
}  // namespace gleaner
