// Tests of the admission of members, and of the limits of unauthenticated streams.
#include <gmock/gmock.h>
#include <grpcpp/generic/generic_stub.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <deque>
#include <fstream>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "tests/sanitizers.h"
#include "tests/unit/coordinator_service/raw_member.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// An authenticator that keeps questions until the test answers them.
class Checker : public Authenticator {
 public:
  struct Question {
    std::string job;
    Identity identity;
    std::string bearer;
    std::function<void(absl::Status)> done;
  };
  void authenticate(const std::string& job, const Identity& identity, const std::string& bearer,
                    std::function<void(absl::Status)> done) override {
    absl::MutexLock lock(&mutex_);
    questions_.push_back({job, identity, bearer, std::move(done)});
  }
  std::optional<Question> next() {
    absl::MutexLock lock(&mutex_);
    const auto some = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !questions_.empty(); };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&some), kPatience)) return std::nullopt;
    Question question = std::move(questions_.front());
    questions_.pop_front();
    return question;
  }

 private:
  absl::Mutex mutex_;
  std::deque<Question> questions_ ABSL_GUARDED_BY(mutex_);
};

class AdmissionTest : public testing::Test {
 protected:
  AdmissionTest() : system_({"test", LogLevel::kOff}), clock_(system_.env().clock) {
    make_certificate(scratch_ / "tls");
    options_.listen = {"127.0.0.1", 0};
    options_.registry = &registry_;
  }
  void start() {
    Env env = system_.env();
    env.clock = &clock_;
    auto service = Service::start(env, options_);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }
  void start_with_bearers() {
    options_.tls = Service::Tls{scratch_ / "tls/certificate.pem", scratch_ / "tls/key.pem"};
    options_.authenticator = &checker_;
    roots_ = contents(scratch_ / "tls/certificate.pem");
    start();
  }
  static Service::JobOptions bearer_job(const std::string& name, uint32_t workers = 1) {
    Service::JobOptions job = token_job(name, workers);
    job.token = "";
    job.data_secret = std::string(32, 's');
    return job;
  }
  std::optional<double> turned_away() {
    for (const auto& family : registry_.Collect()) {
      if (family.name == "gleaner_coordinator_turned_away_streams_total") return family.metric.at(0).counter.value;
    }
    return std::nullopt;
  }
  std::unique_ptr<RawMember> join(const v1::Identity& identity, const std::string& token,
                                  const std::string& bearer = "") {
    auto member = std::make_unique<RawMember>(service_->address(), roots_);
    member->join(identity, token, bearer);
    return member;
  }
  double refused(const std::string& job) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != "gleaner_coordinator_rejected_joins_total") continue;
      for (const auto& series : family.metric) {
        if (series.label.at(0).value == job) return series.counter.value;
      }
    }
    return -1;
  }

  SystemEnv system_;
  JumpingClock clock_;
  Scratch scratch_;
  prometheus::Registry registry_;
  Checker checker_;
  Service::ServiceOptions options_;
  std::string roots_;
  std::unique_ptr<Service> service_;
};

TEST_F(AdmissionTest, UnknownJobIsNotFoundUntilItIsAdded) {
  start();
  const grpc::Status status = join(worker("ns/early/0"), "token of ns/early/0")->end();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("no job 'ns/early/0'"));
  ASSERT_EQ(service_->add(token_job("ns/early/0")), absl::OkStatus());
  EXPECT_TRUE(join(worker("ns/early/0"), "token of ns/early/0")->follow_plan());
}

TEST_F(AdmissionTest, AForeignTokenIsRefusedWithoutEffectOnMembers) {
  start();
  ASSERT_EQ(service_->add(token_job("mine")), absl::OkStatus());
  ASSERT_EQ(service_->add(token_job("theirs")), absl::OkStatus());
  const auto mine = join(worker("mine"), "token of mine");
  ASSERT_TRUE(mine->follow_plan());
  for (int i = 0; i < 3; ++i) {
    const grpc::Status status = join(worker("mine"), "token of theirs")->end();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(status.error_message(), AllOf(HasSubstr("token"), Not(HasSubstr("token of"))));
  }
  EXPECT_EQ(join(worker("mine"), "", "a bearer")->end().error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "members of this job prove a token";
  EXPECT_TRUE(eventually([&] { return refused("mine") == 4; }));
  EXPECT_EQ(refused("theirs"), 0);
  EXPECT_EQ(service_->state("mine")->phase, JobState::Phase::kRunning);
  EXPECT_TRUE(mine->heartbeat());
}

TEST_F(AdmissionTest, AnAuthenticatorChecksBearerTokens) {
  start_with_bearers();
  ASSERT_EQ(service_->add(bearer_job("ns/j/0", 2)), absl::OkStatus());
  const auto member = join(worker("ns/j/0", 1), "", "its token");
  EXPECT_EQ(member->challenge().authentication(), v1::AUTHENTICATION_BEARER);
  const auto question = checker_.next();
  ASSERT_TRUE(question.has_value());
  EXPECT_EQ(question->job, "ns/j/0");
  EXPECT_EQ(question->bearer, "its token");
  EXPECT_EQ(question->identity.role, Role::kWorker);
  EXPECT_EQ(question->identity.index, 1u);
  EXPECT_FALSE(service_->state("ns/j/0")->members[1].joined) << "before the answer";
  std::thread([&] { question->done(absl::OkStatus()); }).join();
  const auto welcome = member->await_welcome();
  ASSERT_TRUE(welcome.has_value());
  EXPECT_EQ(welcome->secret(), std::string(32, 's'));
  EXPECT_EQ(welcome->proof(), "");
  EXPECT_NE(welcome->session(), "");
  EXPECT_TRUE(service_->state("ns/j/0")->members[1].joined);
}

TEST_F(AdmissionTest, ARefusedBearerIsCountedWithoutEffectOnMembers) {
  start_with_bearers();
  ASSERT_EQ(service_->add(bearer_job("j")), absl::OkStatus());
  auto foreign = join(worker("j"), "", "a foreign token");
  checker_.next()->done(absl::PermissionDeniedError("pod other-worker-0 is not worker 0 of this job"));
  grpc::Status status = foreign->end();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(), "pod other-worker-0 is not worker 0 of this job");
  status = join(worker("j"), "", "")->end();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED)
      << "without a token the authenticator is not asked";
  status = join(worker("j"), "token of j", "")->end();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << "the job has no token to prove";
  EXPECT_TRUE(eventually([&] { return refused("j") == 3; }));

  const auto rightful = join(worker("j"), "", "the token");
  checker_.next()->done(absl::OkStatus());
  EXPECT_TRUE(rightful->follow_plan());
}

TEST_F(AdmissionTest, TheAuthenticatorMayAnswerTooLate) {
  start_with_bearers();
  ASSERT_EQ(service_->add(bearer_job("j")), absl::OkStatus());
  // The member has disconnected.
  auto gone = join(worker("j"), "", "x");
  const auto first = checker_.next();
  gone.reset();
  absl::SleepFor(absl::Milliseconds(100));
  first->done(absl::OkStatus());
  // The job was removed, and there is a new job of the same name.
  const auto member = join(worker("j"), "", "y");
  const auto second = checker_.next();
  service_->remove("j", absl::CancelledError("removed"));
  ASSERT_EQ(service_->add(bearer_job("j")), absl::OkStatus());
  second->done(absl::OkStatus());
  EXPECT_EQ(member->end().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_FALSE(service_->state("j")->members[0].joined) << "the answer concerned the removed job";
  // The authenticator never answers.
  const auto waiting = join(worker("j"), "", "z");
  const auto third = checker_.next();
  clock_.jump(absl::Seconds(31));
  EXPECT_EQ(waiting->end().error_code(), grpc::StatusCode::UNAVAILABLE);
  third->done(absl::OkStatus());
  EXPECT_FALSE(service_->state("j")->members[0].joined);
  // The service has ended.
  const auto last = join(worker("j"), "", "z");
  const auto fourth = checker_.next();
  service_.reset();
  fourth->done(absl::OkStatus());
}

TEST_F(AdmissionTest, BearersNeedTls) {
  options_.authenticator = &checker_;
  EXPECT_THAT(std::string(Service::start(system_.env(), options_).status().message()), HasSubstr("TLS"));
  start_with_bearers();
  Service::JobOptions job = bearer_job("j");
  job.data_secret = "short";
  EXPECT_THAT(std::string(service_->add(job).message()), HasSubstr("32 bytes"));
  EXPECT_THAT(std::string(service_->add(token_job("k")).message()), HasSubstr("asks members for bearer tokens"));
}

TEST_F(AdmissionTest, FirstMessagesAreShort) {
  start();
  ASSERT_EQ(service_->add(token_job("j")), absl::OkStatus());
  RawMember member(service_->address());
  ASSERT_TRUE(member.read().has_value());
  v1::MemberMessage message;
  message.mutable_join()->set_bearer(std::string(100'000, 'x'));
  member.write(message);
  EXPECT_EQ(member.end().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  // Admitted members may send longer messages.
  const auto zero = join(worker("j"), "token of j");
  ASSERT_TRUE(zero->follow_plan());
  v1::MemberMessage declare;
  for (int i = 0; i < 10'000; ++i) {
    proto::encode(plan::Tensor{absl::StrCat("layer", i, ".weight"), 10, DataType::kFloat32, i},
                  declare.mutable_declare()->add_tensors());
  }
  EXPECT_GT(declare.ByteSizeLong(), 100'000u);
  zero->write(declare);
  EXPECT_TRUE(zero->follow_plan());
}

long memory_mib(const std::string& which) {
  const std::string status = contents("/proc/self/status");
  return std::atol(status.c_str() + status.find(which) + which.size()) / 1024;
}

// Sends a first message of `mib` MiB, and returns how its stream ended. All parts of the message share 1 MiB of memory.
grpc::StatusCode say_at_length(const Address& address, int mib) {
  const grpc::Slice slice(std::string(1 << 20, 'x'));
  const std::vector<grpc::Slice> slices(static_cast<size_t>(mib), slice);
  const grpc::ByteBuffer message(slices.data(), slices.size());
  grpc::GenericStub stub(grpc::CreateChannel(address.to_string(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoSeconds(kPatience));
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
  };
  const auto call = stub.PrepareCall(&context, "/gleaner.v1.Coordinator/Join", &queue);
  call->StartCall(nullptr);
  next();
  call->Write(message, nullptr);
  next();
  grpc::Status status;
  call->Finish(&status, nullptr);
  next();
  return status.error_code();
}

TEST_F(AdmissionTest, UnauthenticatedPeersDoNotFillTheMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers use additional memory";
  start();
  ASSERT_EQ(service_->add(token_job("j")), absl::OkStatus());
  const long before = memory_mib("VmRSS:");
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak (VmHWM)
  EXPECT_EQ(say_at_length(service_->address(), 1024), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_LT(memory_mib("VmHWM:") - before, 512) << "1024 MiB were sent";
  EXPECT_TRUE(join(worker("j"), "token of j")->follow_plan());
}

TEST_F(AdmissionTest, SilentStreamsAreDropped) {
  start();
  ASSERT_EQ(service_->add(token_job("j")), absl::OkStatus());
  RawMember silent(service_->address());
  ASSERT_TRUE(silent.read().has_value());
  clock_.jump(absl::Seconds(11));
  EXPECT_EQ(silent.end().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(AdmissionTest, UnauthenticatedStreamsOfOneHostAreFew) {
  clock_.stop();  // a slow machine may need longer than silent streams may last
  start();
  ASSERT_EQ(service_->add(token_job("j")), absl::OkStatus());
  std::vector<std::unique_ptr<RawMember>> peers;
  for (int i = 0; i < 256; ++i) {
    peers.push_back(std::make_unique<RawMember>(service_->address()));
    ASSERT_TRUE(peers.back()->read().has_value()) << i;
  }
  clock_.go_on();
  RawMember more(service_->address());
  EXPECT_FALSE(more.read().has_value());
  EXPECT_EQ(more.end().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(eventually([&] { return turned_away() == 1.0; }));
  // Peers that have disconnected, or were admitted, make room for others.
  peers.pop_back();
  std::unique_ptr<RawMember> member;
  EXPECT_TRUE(eventually([&] {
    member = join(worker("j"), "token of j");
    return member->follow_plan();
  }));
  EXPECT_TRUE(RawMember(service_->address()).read().has_value());
}

}  // namespace
}  // namespace gleaner::coordinator
