// Tests that a service finds a slow summer by the reports of real streams, and shows it in its state and its metrics.
#include <gtest/gtest.h>
#include <prometheus/registry.h>

#include <atomic>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "tests/unit/coordinator_service/raw_member.h"

namespace gleaner::coordinator {
namespace {

// A member that follows every plan. A thread reads its stream.
class FollowingMember {
 public:
  FollowingMember(const Address& service, const Service::JobOptions& job, const v1::Identity& identity)
      : member_(service) {
    member_.join(identity, job.token);
    reader_ = std::thread([this] { follow(); });
  }
  ~FollowingMember() {
    member_.cancel();
    reader_.join();
  }
  void write(const v1::MemberMessage& message) {
    absl::MutexLock lock(&writing_);
    member_.write(message);
  }
  uint32_t epoch() const { return epoch_; }

 private:
  void follow() {
    while (const auto message = member_.read()) {
      if (message->has_commit()) epoch_ = message->commit().epoch();
      if (!message->has_prepare()) continue;
      v1::MemberMessage answer;
      answer.mutable_acknowledge()->set_epoch(message->prepare().plan().epoch());
      write(answer);
    }
  }

  RawMember member_;
  absl::Mutex writing_;
  std::atomic<uint32_t> epoch_{0};
  std::thread reader_;
};

class SlowSummerTest : public testing::Test {
 protected:
  SlowSummerTest() : system_({"test", LogLevel::kOff}), clock_(system_.env().clock) {
    options_.listen = {"127.0.0.1", 0};
    options_.registry = &registry_;
    Env env = system_.env();
    env.clock = &clock_;
    service_ = Service::start(env, options_).value();
    // The clock jumps, and no member is lost by that.
    job_.options.deadline = job_.options.summer_timeout = job_.options.change_timeout = absl::Hours(24);
    EXPECT_EQ(service_->add(job_), absl::OkStatus());
    for (uint32_t i = 0; i < 2; ++i) join(worker("job", i));
    join(summer("job", 0));
  }
  void join(const v1::Identity& identity) {
    members_.push_back(std::make_unique<FollowingMember>(service_->address(), job_, identity));
  }
  void declare() {
    v1::MemberMessage message;
    v1::Tensor* tensor = message.mutable_declare()->add_tensors();
    tensor->set_name("w");
    tensor->set_elements(1 << 20);
    tensor->set_type(static_cast<uint32_t>(DataType::kFloat32));
    for (uint32_t i = 0; i < 2; ++i) members_[i]->write(message);
  }
  MemberState summer_state() { return service_->state("job")->members.at(2); }
  // Has the workers report ten seconds, in which they waited for the summer while it had a share: then they made 10
  // steps, otherwise 100.
  void report() {
    clock_.jump(absl::Seconds(10));
    const bool is_slow = summer_state().owned_bytes > 0;
    steps_ += is_slow ? 10 : 100;
    communication_ += 9.5;
    late_ += is_slow ? 9 : 0;
    for (uint32_t i = 0; i < 2; ++i) {
      v1::MemberMessage message;
      v1::Report* report = message.mutable_report();
      report->set_steps(steps_);
      report->set_communication_seconds(communication_);
      report->set_epoch(members_[i]->epoch());
      v1::Late* late = report->add_late();
      late->set_member(2);
      late->set_seconds(late_);
      members_[i]->write(message);
    }
    absl::SleepFor(absl::Milliseconds(20));  // so that the service seldom gets several reports in one instant
  }
  double slow_summers() {
    for (const auto& family : registry_.Collect()) {
      if (family.name == "gleaner_coordinator_slow_summers") return family.metric.at(0).gauge.value;
    }
    return -1;
  }

  SystemEnv system_;
  JumpingClock clock_;
  prometheus::Registry registry_;
  Service::ServiceOptions options_;
  Service::JobOptions job_ = token_job("job", 2, 1);
  std::unique_ptr<Service> service_;
  std::vector<std::unique_ptr<FollowingMember>> members_;
  uint64_t steps_ = 0;
  double communication_ = 0, late_ = 0;
};

TEST_F(SlowSummerTest, IsInTheStateAndInTheMetrics) {
  ASSERT_TRUE(eventually([&] { return service_->state("job")->epoch == 1; }));
  declare();
  ASSERT_TRUE(eventually([&] { return summer_state().owned_bytes > 0 && members_[1]->epoch() == 2; }));
  EXPECT_EQ(summer_state().slow, "");
  ASSERT_TRUE(eventually([&] {
    report();
    return !summer_state().slow.empty();
  }));
  EXPECT_EQ(summer_state().owned_bytes, 0u);
  EXPECT_TRUE(eventually([&] { return slow_summers() == 1; }));
  ASSERT_TRUE(eventually([&] {
    report();
    return summer_state().owned_bytes > 0;
  })) << "it is tried again";
}

}  // namespace
}  // namespace gleaner::coordinator
