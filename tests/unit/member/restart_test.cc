// Members whose coordinator goes away and comes back, on the same port, over real gRPC.
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
#include "operator/coordinator/service.h"
#include "tests/unit/member/participant.h"
#include "tests/unit/run/program.h"

namespace gleaner {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kToken[] = "0123456789abcdef";

plan::Tensor tensor(const std::string& name) { return {name, 1000, DataType::kFloat32, 0}; }

class RestartTest : public testing::Test {
 protected:
  RestartTest() : system_({"test", LogLevel::kOff}) {
    job_.options.job = "default";
    job_.options.workers = 2;
    job_.options.summers = 1;
    job_.token = kToken;
  }

  void start() {
    coordinator::Service::ServiceOptions options = service_options_;
    options.listen = {"127.0.0.1", address_.port};
    auto service = coordinator::Service::start(system_.env(), options);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    address_ = service_->address();
  }
  void start_job(bool may_resume = true) {
    start();
    job_.may_resume = may_resume;
    ASSERT_EQ(service_->add(job_), absl::OkStatus());
  }
  void kill() { service_.reset(); }

  member::JoinOptions worker_options(uint32_t index) const {
    member::JoinOptions join;
    join.coordinator = address_;
    join.token = kToken;
    join.index = index;
    join.address = absl::StrCat("127.0.0.1:", 7000 + index);
    join.timeout = absl::Seconds(30);
    return join;
  }
  // Workers 0 and 1, and a summer.
  std::unique_ptr<Participant> join(uint32_t member) const {
    member::JoinOptions options = worker_options(member);
    if (member == 2) {
      options.role = member::Role::kSummer;
      options.index = 0;
    }
    return std::make_unique<Participant>(system_.env(), options);
  }
  void join_all() {
    for (uint32_t member = 0; member < 3; ++member) members_.push_back(join(member));
  }
  void begin() {
    start_job(false);
    join_all();
    declare_all("a");
    await_all(2);
  }
  void declare_all(const std::string& name) {
    for (uint32_t i = 0; i < 2; ++i) members_[i]->client().declare({tensor(name)});
  }
  void await_all(uint32_t epoch) {
    for (const auto& member : members_) ASSERT_NE(member->await_epoch(epoch), nullptr) << member->await_failure();
  }
  bool await_outcome(const absl::Status& expected) {
    return eventually([&] {
      const auto state = service_->state("default");
      return state.has_value() && state->outcome == expected;
    });
  }

  SystemEnv system_;
  coordinator::Service::ServiceOptions service_options_;
  coordinator::Service::JobOptions job_;
  Address address_;
  std::unique_ptr<coordinator::Service> service_;
  std::vector<std::unique_ptr<Participant>> members_;
};

TEST_F(RestartTest, JobGoesOnUnderTheNextCoordinator) {
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
  EXPECT_EQ(plan->tensors[0], tensor("a"));
  for (const auto& member : members_) EXPECT_EQ(member->welcomes(), 1) << "it is the same job to them";
  EXPECT_EQ(members_[0]->await_welcome()->secret, secret);

  members_[0]->client().report({10, 40000, 0.5});
  members_[0]->client().leave(absl::OkStatus(), kPatience);
  members_[1]->client().leave(absl::OkStatus(), kPatience);
  EXPECT_TRUE(members_[2]->await_finished());
  EXPECT_TRUE(await_outcome(absl::OkStatus()));
  EXPECT_EQ(service_->state("default")->summary.steps, 10u);
}

TEST_F(RestartTest, WhatIsDeclaredMeanwhileIsPlanned) {
  begin();
  kill();
  EXPECT_TRUE(members_[0]->await_coordinator_lost());
  declare_all("b");
  start_job();
  await_all(3);
}

TEST_F(RestartTest, BeforeTheFirstPlanMembersJoinAnew) {
  start_job(false);
  members_.push_back(join(1));
  ASSERT_TRUE(members_[0]->await_welcome().has_value());
  kill();
  start_job();
  members_.push_back(join(0));
  members_.push_back(join(2));
  await_all(1);
}

TEST_F(RestartTest, MembersMayComeBeforeTheJob) {
  start();
  join_all();
  absl::SleepFor(absl::Milliseconds(300));
  job_.may_resume = false;
  ASSERT_EQ(service_->add(job_), absl::OkStatus());
  await_all(1);
}

TEST_F(RestartTest, NeitherTrainingNorLeavingNeedsACoordinator) {
  begin();
  kill();
  EXPECT_TRUE(members_[0]->await_coordinator_lost());
  members_[0]->client().report({1, 4000, 0.1});
  members_[0]->client().leave(absl::OkStatus(), absl::Milliseconds(300));
  members_[0]->client().stop();
  EXPECT_FALSE(members_[0]->failed());

  start_job();
  EXPECT_TRUE(members_[1]->await_coordinator_found());
  service_->ended("default", coordinator::Role::kWorker, 0, absl::OkStatus());  // its process was seen to end well
  members_[1]->client().leave(absl::OkStatus(), kPatience);
  EXPECT_TRUE(members_[2]->await_finished());
  EXPECT_TRUE(await_outcome(absl::OkStatus()));
}

TEST_F(RestartTest, GoodByeIsSaidToTheNext) {
  begin();
  kill();
  for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_lost());
  std::thread leaver([this] { members_[0]->client().leave(absl::OkStatus(), kPatience); });
  start_job();
  leaver.join();
  members_[1]->client().leave(absl::OkStatus(), kPatience);
  EXPECT_TRUE(members_[2]->await_finished());
}

TEST_F(RestartTest, TensorThatWaitsTooLongFailsTheJobAndSaysWhatToDo) {
  job_.options.workers = 1;
  job_.options.summers = 0;
  start_job(false);
  member::JoinOptions options = worker_options(0);
  options.plan_timeout = absl::Milliseconds(500);
  Participant zero(system_.env(), options);
  ASSERT_NE(zero.await_epoch(1), nullptr);
  kill();
  EXPECT_TRUE(zero.await_coordinator_lost());
  absl::SleepFor(absl::Milliseconds(700));
  EXPECT_FALSE(zero.failed()) << "it is the tensor that waits";
  zero.client().declare({tensor("b")});
  EXPECT_THAT(std::string(zero.await_failure().message()),
              AllOf(HasSubstr("tensor 'b'"), HasSubstr("500ms"), HasSubstr(address_.to_string()), HasSubstr("refused"),
                    HasSubstr("GLEANER_PLAN_TIMEOUT")));
}

TEST_F(RestartTest, CoordinatorThatCannotTakeTheJobUpIsDoneWithout) {
  begin();
  kill();
  start_job(false);
  for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_lost());
  absl::SleepFor(absl::Seconds(1));
  EXPECT_FALSE(members_[0]->failed());
  members_[0]->client().declare({tensor("b")});
  EXPECT_THAT(std::string(members_[0]->await_failure().message()),
              AllOf(HasSubstr("tensor 'b'"), HasSubstr("can't take up a job")));
}

TEST_F(RestartTest, LostMemberIsFoundOutByTheNext) {
  job_.options.start_timeout = absl::Seconds(2);
  begin();
  kill();
  members_[2].reset();
  start_job();
  EXPECT_THAT(std::string(members_[0]->await_failure().message()), HasSubstr("summer 0 did not come back within 2s"));
  EXPECT_THAT(std::string(members_[1]->await_failure().message()), HasSubstr("summer 0"));
}

TEST_F(RestartTest, StreamThatBreaksUnderALivingCoordinatorIsMended) {
  job_.options.return_timeout = absl::Seconds(30);
  job_.options.deadline = absl::Milliseconds(300);  // heartbeats come once a second: all of them fall silent at times
  start_job(false);
  join_all();
  for (const auto& member : members_) EXPECT_TRUE(member->await_welcome().has_value());
  declare_all("a");
  await_all(2);
  EXPECT_TRUE(members_[0]->await_coordinator_found());
  declare_all("b");
  await_all(3);
}

// Answers in the coordinator's place, without the token.
class Usurper final : public v1::Coordinator::Service {
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::MemberMessage>* stream) override {
    v1::CoordinatorMessage message;
    message.mutable_challenge()->set_protocol(1);
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

TEST_F(RestartTest, NobodyElseCanEndOrTakeOverTheJob) {
  begin();
  kill();
  {
    Usurper usurper;
    const auto server = grpc::ServerBuilder()
                            .AddListeningPort(address_.to_string(), grpc::InsecureServerCredentials())
                            .RegisterService(&usurper)
                            .BuildAndStart();
    ASSERT_NE(server, nullptr);
    EXPECT_TRUE(eventually([&] { return usurper.visits > 5; }));
    EXPECT_FALSE(usurper.told_more);
  }
  for (const auto& member : members_) EXPECT_FALSE(member->failed());
  start_job();
  for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_found());
  declare_all("b");
  await_all(3);
}

// --- TLS and bearer tokens

// Who shows "right-2", and so on, is worker 2.
class Doorkeeper final : public coordinator::Authenticator {
 public:
  explicit Doorkeeper(std::string password) : password_(std::move(password)) {}
  void authenticate(const std::string&, const coordinator::Identity& identity, const std::string& bearer,
                    std::function<void(absl::Status)> done) override {
    done(bearer == absl::StrCat(password_, "-", *identity.index)
             ? absl::OkStatus()
             : absl::PermissionDeniedError(absl::StrCat("not the token of worker ", *identity.index)));
  }

 private:
  const std::string password_;
};

class BearerTest : public RestartTest {
 protected:
  BearerTest() {
    job_.token.clear();
    job_.data_secret = std::string(32, 's');
    job_.options.summers = 0;
    service_options_.tls = coordinator::Service::Tls{scratch_ / "certificate.pem", scratch_ / "key.pem"};
  }
  // A certificate for 127.0.0.1 that is its own authority.
  void renew(const std::string& password) {
    const Ended ended =
        run_to_end({"/usr/bin/openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                    "-nodes", "-days", "2", "-subj", "/CN=coordinator", "-addext", "subjectAltName=IP:127.0.0.1",
                    "-keyout", scratch_ / "key.pem", "-out", scratch_ / "certificate.pem"});
    ASSERT_EQ(ended.status, 0) << ended.errors;
    for (int i = 0; i < 2; ++i) {
      std::ofstream(scratch_ / absl::StrCat("token-", i)) << password << "-" << i << "\n";
    }
    doorkeeper_ = std::make_unique<Doorkeeper>(password);
    service_options_.authenticator = doorkeeper_.get();
  }
  member::JoinOptions bearer_options(uint32_t index) const {
    member::JoinOptions options = worker_options(index);
    options.token = "stale";
    options.token_file = scratch_ / absl::StrCat("token-", index);
    options.ca_file = scratch_ / "certificate.pem";
    return options;
  }

  Scratch scratch_;
  std::unique_ptr<Doorkeeper> doorkeeper_;
};

TEST_F(BearerTest, TokensAndAuthoritiesMayBeRenewedMidJob) {
  renew("first");
  start_job(false);
  for (uint32_t i = 0; i < 2; ++i) {
    members_.push_back(std::make_unique<Participant>(system_.env(), bearer_options(i)));
  }
  await_all(1);
  wire::Secret expected;
  expected.fill('s');
  EXPECT_EQ(members_[0]->await_welcome()->secret, expected);
  kill();
  renew("second");
  start_job();
  for (const auto& member : members_) EXPECT_TRUE(member->await_coordinator_found());
  declare_all("a");
  await_all(2);
}

TEST_F(BearerTest, ForeignTokensAndAuthoritiesAreRefused) {
  renew("right");
  start_job(false);
  member::JoinOptions options = bearer_options(0);
  options.token_file = scratch_ / "token-1";
  EXPECT_TRUE(absl::IsPermissionDenied(Participant(system_.env(), options).await_failure()));

  options = bearer_options(0);
  options.ca_file = scratch_ / "other.pem";
  std::filesystem::copy(scratch_ / "certificate.pem", options.ca_file);
  kill();
  renew("right");
  start_job(false);
  options.timeout = absl::Seconds(1);
  absl::Status status = Participant(system_.env(), options).await_failure();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;

  options = bearer_options(0);
  options.coordinator.host = "localhost";
  options.timeout = absl::Seconds(1);
  status = Participant(system_.env(), options).await_failure();
  EXPECT_TRUE(absl::IsUnavailable(status)) << "the certificate is for another name: " << status;
}

TEST_F(BearerTest, FilesThatCannotServeAreSaidSoAtOnce) {
  renew("right");
  start_job(false);
  struct Silent : member::Listener {
    void on_welcome(const member::Welcome&) override {}
    void on_prepare(std::shared_ptr<const plan::Plan>) override {}
    void on_commit(uint32_t) override {}
    void on_failed(const absl::Status&) override {}
    void on_finished() override {}
  } listener;
  member::JoinOptions options = bearer_options(0);
  options.ca_file = scratch_ / "absent";
  auto client = member::Client::start(system_.env(), options, &listener);
  EXPECT_TRUE(absl::IsNotFound(client.status())) << client.status();
  options.ca_file = scratch_ / "token-0";
  client = member::Client::start(system_.env(), options, &listener);
  EXPECT_THAT(std::string(client.status().message()), AllOf(HasSubstr("token-0"), HasSubstr("no certificate")));
}

// Asks for the token itself, in plain text.
class Thief final : public v1::Coordinator::Service {
  grpc::Status Join(grpc::ServerContext*,
                    grpc::ServerReaderWriter<v1::CoordinatorMessage, v1::MemberMessage>* stream) override {
    v1::CoordinatorMessage message;
    message.mutable_challenge()->set_protocol(1);
    message.mutable_challenge()->set_nonce(std::string(32, 'n'));
    message.mutable_challenge()->set_authentication(v1::AUTHENTICATION_BEARER);
    stream->Write(message);
    v1::MemberMessage answer;
    got_answer = stream->Read(&answer);
    return grpc::Status::OK;
  }

 public:
  std::atomic<bool> got_answer{false};
};

TEST_F(BearerTest, TokenIsNotSentInPlainText) {
  renew("right");
  Thief thief;
  int port = 0;
  const auto server = grpc::ServerBuilder()
                          .AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port)
                          .RegisterService(&thief)
                          .BuildAndStart();
  address_ = {"127.0.0.1", static_cast<uint16_t>(port)};
  member::JoinOptions options = bearer_options(0);
  options.ca_file.clear();
  const absl::Status status = Participant(system_.env(), options).await_failure();
  EXPECT_THAT(std::string(status.message()), HasSubstr("GLEANER_CA_FILE"));
  EXPECT_FALSE(thief.got_answer);
}

}  // namespace
}  // namespace gleaner
