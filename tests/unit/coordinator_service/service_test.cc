// Tests of many jobs behind one port: how members find their job, the reports of jobs, and the ends of jobs.
#include "coordinator/service/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <array>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "tests/loopback6.h"
#include "tests/unit/coordinator_service/raw_member.h"

namespace gleaner::coordinator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() : system_({"test", LogLevel::kOff}) {}

  void start() {
    options_.listen = {"127.0.0.1", 0};
    options_.registry = &registry_;
    auto service = Service::start(system_.env(), options_);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
  }
  std::unique_ptr<RawMember> join(const Service::JobOptions& job, const v1::Identity& identity) {
    auto member = std::make_unique<RawMember>(service_->address());
    member->join(identity, job.token);
    return member;
  }
  std::optional<double> metric(const std::string& name, const std::string& job) {
    for (const auto& family : registry_.Collect()) {
      if (family.name != name) continue;
      for (const auto& series : family.metric) {
        if (series.label.at(0).name == "job_name" && series.label[0].value == job) {
          return family.type == prometheus::MetricType::Counter ? series.counter.value : series.gauge.value;
        }
      }
    }
    return std::nullopt;
  }
  size_t series() {
    size_t count = 0;
    for (const auto& family : registry_.Collect()) count += family.metric.size();
    return count;
  }
  JobState::Phase phase(const std::string& job) { return service_->state(job)->phase; }

  SystemEnv system_;
  prometheus::Registry registry_;
  Service::ServiceOptions options_;
  std::unique_ptr<Service> service_;
};

TEST_F(ServiceTest, NamesAreUtf8WithoutControlCharacters) {
  start();
  for (const std::string name : {"caf\xe9", "two\nlines", "cut\xe6\xa8", ""}) {
    const absl::Status status = service_->add(token_job(name));
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the job's name"));
    const grpc::Status refused = join(token_job(name), worker(name))->end();
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(refused.error_message(), HasSubstr("the name of the member's job"));
  }
  EXPECT_EQ(service_->add(token_job("caf\xc3\xa9")), absl::OkStatus());
}

TEST_F(ServiceTest, NamesOfTensorsAreCheckedInEveryMessage) {
  start();
  int number = 0;
  for (const char* name : {"caf\xe9", "two\nlines", "cut\xe6\xa8"}) {
    std::array<v1::MemberMessage, 3> messages;
    v1::Tensor* tensor = messages[0].mutable_declare()->add_tensors();
    tensor->set_name(name);
    tensor->set_elements(1);
    tensor->set_type(static_cast<uint32_t>(DataType::kFloat32));
    v1::Operation* operation = messages[1].mutable_declare()->add_operations();
    operation->set_tensor(name);
    operation->set_op(static_cast<uint32_t>(ReduceOp::kSum));
    messages[2].mutable_report()->mutable_waiting()->set_tensor(name);
    for (const v1::MemberMessage& message : messages) {
      const auto job = token_job(absl::StrCat("job ", number++));
      ASSERT_EQ(service_->add(job), absl::OkStatus());
      const auto member = join(job, worker(job.options.job));
      ASSERT_TRUE(member->follow_plan());
      member->write(message);
      ASSERT_TRUE(eventually([&] { return service_->state(job.options.job)->outcome.has_value(); }));
      EXPECT_THAT(std::string(service_->state(job.options.job)->outcome->message()), HasSubstr("a tensor's name '"));
      member->cancel();
    }
  }
}

TEST_F(ServiceTest, ListensOnIPv6) {
  SKIP_WITHOUT_LOOPBACK6();
  options_.listen = {"::1", 0};
  options_.registry = &registry_;
  service_ = Service::start(system_.env(), options_).value();
  EXPECT_EQ(service_->address().host, "::1");
  const auto job = token_job("digits");
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  EXPECT_TRUE(join(job, worker("digits"))->follow_plan());
}

TEST_F(ServiceTest, StateHasTheSchedulesOfThePlan) {
  start();
  auto job = token_job("digits");
  job.options.reduction.strategy = collective::Spec{"ring"};
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  const auto member = join(job, worker("digits"));
  ASSERT_TRUE(member->follow_plan());
  EXPECT_EQ(service_->state("digits")->schedules, std::vector<collective::Spec>{{"ring"}});
  EXPECT_TRUE(service_->state("digits")->strategies.empty()) << "there is no tensor yet";
}

TEST_F(ServiceTest, MembersReachTheirJobs) {
  start();
  const auto one = token_job("a/one/0", 2, 1), two = token_job("a/two/0");
  ASSERT_EQ(service_->add(one), absl::OkStatus());
  ASSERT_EQ(service_->add(two), absl::OkStatus());
  const auto alone = join(two, worker("a/two/0"));
  ASSERT_TRUE(alone->follow_plan());
  const auto zero = join(one, worker("a/one/0", 0)), first = join(one, worker("a/one/0", 1));
  ASSERT_TRUE(zero->await_welcome().has_value());
  EXPECT_EQ(phase("a/one/0"), JobState::Phase::kGathering);
  const auto summed = join(one, summer("a/one/0", 0));
  std::thread follows_zero([&] { EXPECT_TRUE(zero->follow_plan()); });
  std::thread follows_first([&] { EXPECT_TRUE(first->follow_plan()); });
  EXPECT_TRUE(summed->follow_plan());
  follows_zero.join();
  follows_first.join();
  EXPECT_EQ(summed->plan().members_size(), 3);

  const JobState state = *service_->state("a/one/0");
  EXPECT_EQ(state.phase, JobState::Phase::kRunning);
  EXPECT_EQ(state.epoch, 1u);
  EXPECT_EQ(state.proposed_epoch, 0u);
  ASSERT_EQ(state.members.size(), 3u);
  EXPECT_EQ(state.members[1].name, "worker-1");
  EXPECT_EQ(state.members[1].address, "10.0.0.2:7071");
  EXPECT_EQ(state.members[2].name, "summer-0");
  EXPECT_EQ(state.members[2].role, Role::kSummer);
  EXPECT_TRUE(state.members[2].joined);
  EXPECT_FALSE(state.members[2].left);
  EXPECT_EQ(state.members[2].acknowledged_epoch, 1u);
  EXPECT_EQ(state.members[2].bits_per_second, kAssumedBitsPerSecond);
  EXPECT_EQ(service_->state("a/two/0")->members.size(), 1u);
  EXPECT_FALSE(service_->state("a/three/0").has_value());
}

TEST_F(ServiceTest, OwnedBytesMatchThePlan) {
  start();
  const auto job = token_job("j", 2);
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  const auto zero = join(job, worker("j", 0)), one = join(job, worker("j", 1));
  v1::MemberMessage declare;
  proto::encode(plan::Tensor{"w", 1 << 20, DataType::kFloat32, 0}, declare.mutable_declare()->add_tensors());
  const auto take_part = [&declare](auto& member) {  // a stream is written by one thread at a time
    EXPECT_TRUE(member.follow_plan());
    member.write(declare);
    EXPECT_TRUE(member.follow_plan());
  };
  std::thread other([&] { take_part(*one); });
  take_part(*zero);
  other.join();
  const JobState state = *service_->state("j");
  EXPECT_EQ(state.epoch, 2u);
  EXPECT_EQ(state.members[0].owned_bytes + state.members[1].owned_bytes, uint64_t{4} << 20);
  EXPECT_GT(state.members[0].owned_bytes, 0u);
}

TEST_F(ServiceTest, NamesAreUniqueAndOptionsChecked) {
  start();
  ASSERT_EQ(service_->add(token_job("j")), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(service_->add(token_job("j", 7))));
  EXPECT_EQ(metric("gleaner_coordinator_expected_ranks", "j").value_or(-1), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(service_->add(token_job("k", 0))));
  Service::JobOptions bare = token_job("k");
  bare.token = "";
  EXPECT_THAT(std::string(service_->add(bare).message()), HasSubstr("token is empty"));
  EXPECT_FALSE(metric("gleaner_coordinator_expected_ranks", "k").has_value());
}

TEST_F(ServiceTest, RemovedJobsTellTheirMembersAndAreForgotten) {
  start();
  const auto job = token_job("j", 2);
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  const auto stays = token_job("stays");
  ASSERT_EQ(service_->add(stays), absl::OkStatus());
  const auto other = join(stays, worker("stays"));
  ASSERT_TRUE(other->follow_plan());
  const auto zero = join(job, worker("j", 0));
  ASSERT_TRUE(zero->await_welcome().has_value());
  EXPECT_TRUE(eventually([&] { return metric("gleaner_coordinator_joined_ranks", "j") == 1.0; }));
  service_->remove("j", absl::CancelledError("its TrainingJob is gone"));
  service_->remove("j", absl::CancelledError("twice"));
  EXPECT_FALSE(service_->state("j").has_value());
  EXPECT_FALSE(metric("gleaner_coordinator_joined_ranks", "j").has_value());

  // The name is free at once, and the new job is separate from the old one.
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  const auto message = zero->read();
  ASSERT_TRUE(message.has_value() && message->has_failed());
  EXPECT_EQ(message->failed().status().message(), "its TrainingJob is gone");
  EXPECT_TRUE(zero->end().ok());
  const auto again = join(job, worker("j", 0));
  EXPECT_TRUE(again->await_welcome().has_value());
  EXPECT_TRUE(eventually([&] { return metric("gleaner_coordinator_joined_ranks", "j") == 1.0; }));
  EXPECT_EQ(phase("stays"), JobState::Phase::kRunning);
  EXPECT_TRUE(other->heartbeat());
}

TEST_F(ServiceTest, CallbacksReportChangesAndMayCallTheService) {
  absl::Mutex mutex;
  std::vector<std::string> told;
  std::vector<JobState::Phase> phases;
  Service* service = nullptr;
  options_.on_changed = [&](const std::string& job) {
    absl::MutexLock lock(&mutex);
    told.push_back(job);
    if (const auto state = service->state(job)) {
      phases.push_back(state->phase);
      if (state->phase == JobState::Phase::kEnded) service->remove(job, absl::OkStatus());
    }
  };
  start();
  {
    absl::MutexLock lock(&mutex);
    service = service_.get();
  }
  const auto job = token_job("j");
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  const auto zero = join(job, worker("j"));
  ASSERT_TRUE(zero->follow_plan());
  const auto seen = [&](JobState::Phase phase) {
    return eventually([&] {
      absl::MutexLock lock(&mutex);
      return std::find(phases.begin(), phases.end(), phase) != phases.end();
    });
  };
  EXPECT_TRUE(seen(JobState::Phase::kRunning));
  v1::MemberMessage leave;
  leave.mutable_leave()->set_epoch(1);
  zero->write(leave);
  EXPECT_TRUE(seen(JobState::Phase::kEnded));
  EXPECT_TRUE(eventually([&] { return !service_->state("j").has_value(); }));
  // Reports are coalesced: an idle job reports nothing for any number of heartbeats.
  absl::MutexLock lock(&mutex);
  EXPECT_LE(told.size(), 6u);
}

TEST_F(ServiceTest, NoRoundOfAnElasticJobHasTheSecretOfAnother) {
  start();
  auto job = token_job("j", 2);
  job.options.min_workers = 1;
  job.options.max_workers = 2;
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  auto zero = join(job, worker("j", 0));
  auto one = join(job, worker("j", 1));
  std::thread other([&] { EXPECT_TRUE(one->follow_plan()); });
  ASSERT_TRUE(zero->follow_plan());
  other.join();
  EXPECT_TRUE(zero->welcome().elastic());
  one.reset();  // worker 1 is lost
  std::optional<v1::CoordinatorMessage> told = zero->read();
  while (told.has_value() && !told->has_failed()) told = zero->read();
  ASSERT_TRUE(told.has_value());
  EXPECT_TRUE(told->failed().again());
  EXPECT_THAT(std::string(told->failed().status().message()), HasSubstr("worker 1"));
  v1::MemberMessage leave;
  leave.mutable_leave()->set_again(true);
  zero->write(leave);
  EXPECT_TRUE(zero->read()->has_goodbye());
  const auto again = join(job, worker("j", 0));
  ASSERT_TRUE(again->follow_plan());
  EXPECT_EQ(again->welcome().workers(), 1u);
  EXPECT_NE(again->welcome().job_nonce(), zero->welcome().job_nonce()) << "data secrets are derived from the nonce";
  EXPECT_GT(again->plan().epoch(), zero->plan().epoch());
}

TEST_F(ServiceTest, TheEndOfAJobHasItsCauseAndItsMember) {
  start();
  const auto job = token_job("j", 2, 0);
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  const auto zero = join(job, worker("j", 0));
  const auto lost = join(job, worker("j", 1));
  std::thread other([&] { EXPECT_TRUE(lost->follow_plan()); });
  ASSERT_TRUE(zero->follow_plan());
  other.join();
  service_->ended("j", Role::kWorker, 1, absl::AbortedError("its pod was evicted"));
  service_->ended("nowhere", Role::kWorker, 0, absl::AbortedError("x"));
  const JobState state = *service_->state("j");
  EXPECT_EQ(state.phase, JobState::Phase::kEnded);
  EXPECT_THAT(std::string(state.outcome->message()), AllOf(HasSubstr("worker 1"), HasSubstr("its pod was evicted")));
  ASSERT_TRUE(state.culprit.has_value());
  EXPECT_EQ(state.culprit->role, Role::kWorker);
  EXPECT_EQ(state.culprit->index, 1u);
  const auto message = zero->read();
  ASSERT_TRUE(message.has_value());
  EXPECT_TRUE(message->has_failed());
}

TEST_F(ServiceTest, AJobMayStartWithFewerSummers) {
  start();
  const auto job = token_job("j", 1, 3);
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  const auto zero = join(job, worker("j"));
  ASSERT_TRUE(zero->await_welcome().has_value());
  EXPECT_EQ(phase("j"), JobState::Phase::kGathering);
  EXPECT_EQ(service_->set_summers("j", 0), absl::OkStatus());
  EXPECT_TRUE(zero->follow_plan());
  EXPECT_EQ(zero->plan().members_size(), 1);
  EXPECT_EQ(service_->state("j")->members.size(), 1u);
  EXPECT_TRUE(absl::IsFailedPrecondition(service_->set_summers("j", 1)));
  EXPECT_TRUE(absl::IsNotFound(service_->set_summers("k", 1)));
}

TEST_F(ServiceTest, JobsOutliveTheirCoordinator) {
  start();
  const auto job = token_job("j");
  ASSERT_EQ(service_->add(job), absl::OkStatus());
  const auto zero = join(job, worker("j"));
  ASSERT_TRUE(zero->follow_plan());
  service_.reset();
  EXPECT_FALSE(zero->read().has_value()) << "the member gets no message that the job has ended";
  EXPECT_EQ(zero->end().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ServiceTest, AThousandJobsNeedNoThreadsAndLeaveNothing) {
  start();
  ASSERT_EQ(service_->add(token_job("first")), absl::OkStatus());
  const auto threads = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}); };
  const size_t before = series();
  const auto alone = threads();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(service_->add(token_job(absl::StrCat("job", i))), absl::OkStatus());
  const auto last = token_job("job999");
  const auto zero = join(last, worker("job999"));
  EXPECT_TRUE(zero->follow_plan());
  EXPECT_LE(threads(), alone + 16) << "at most the threads of gRPC";
  EXPECT_EQ(series(), (before - 1) * 1001 + 1) << "one series belongs to the service";
  for (int i = 0; i < 1000; ++i) service_->remove(absl::StrCat("job", i), absl::CancelledError("enough"));
  EXPECT_EQ(series(), before);
  EXPECT_TRUE(service_->state("first").has_value());
}

}  // namespace
}  // namespace gleaner::coordinator
