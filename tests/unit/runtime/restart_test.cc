// Tests of training while the coordinator restarts, with real ranks, a real summer and real connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "comm-lib/runtime/rank.h"
#include "coordinator/service.h"
#include "summation-service/service/server.h"

namespace gleaner::runtime {
namespace {

constexpr uint64_t kElements = 100'000;
constexpr absl::Duration kPatience = absl::Seconds(60);

// The schedule of all workers, by step.
struct Schedule {
  static constexpr int kNever = 1 << 30;
  std::atomic<int> second_tensor_at{kNever};
  std::atomic<int> third_tensor_at{kNever};
  std::atomic<int> end_at{kNever};

  int tensors(int step) const { return 1 + (step >= second_tensor_at ? 1 : 0) + (step >= third_tensor_at ? 1 : 0); }
};

class Worker {
 public:
  Worker(uint32_t index, uint32_t local_rank, uint32_t local_size, const Address& coordinator, const Schedule* program)
      : index_(index), sum_(static_cast<float>(3 * local_size)), program_(*program) {
    config_.local_rank = local_rank;
    config_.local_size = local_size;
    config_.coordinator = coordinator;
    config_.token = "token";
    config_.worker = index;
    config_.log_level = LogLevel::kOff;
    thread_ = std::thread([this] { status_ = train(); });
  }
  ~Worker() {
    if (thread_.joinable()) thread_.join();
  }
  int steps() const { return steps_; }
  absl::Status wait() {
    thread_.join();
    return status_;
  }

 private:
  absl::Status train() {
    auto rank = Rank::open(config_);
    if (!rank.ok()) return rank.status();
    absl::Status status;
    while (status.ok() && steps_ < program_.end_at) {
      for (int i = 0; i < program_.tensors(steps_) && status.ok(); ++i) {
        status = push_pull(**rank, absl::StrCat("tensor ", i));
      }
      (*rank)->step();
      ++steps_;
    }
    const absl::Status closed = (*rank)->close(status.ok() ? Rank::Leave::kCleanly : Rank::Leave::kFailed);
    return status.ok() ? closed : status;
  }
  absl::Status push_pull(Rank& rank, const std::string& name) {
    const auto tensor = rank.declare({name, kElements, DataType::kFloat32, 0});
    if (!tensor.ok()) return tensor.status();
    std::vector<float> values(kElements);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(i % 1000) * static_cast<float>(index_ + 1);
    const auto handle = rank.push_pull(*tensor, values.data(), values.data(), ReduceOp::kSum);
    if (!handle.ok()) return handle.status();
    absl::Status outcome;
    if (absl::Status status = rank.handles().wait(*handle, kPatience, &outcome); !status.ok()) return status;
    if (!outcome.ok()) return outcome;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != static_cast<float>(i % 1000) * sum_) return absl::DataLossError(absl::StrCat("element ", i));
    }
    return absl::OkStatus();
  }

  const uint32_t index_;
  const float sum_;  // sum of all ranks' factors
  const Schedule& program_;
  Config config_;
  std::atomic<int> steps_{0};
  absl::Status status_;
  std::thread thread_;
};

class TrainingTest : public testing::TestWithParam<uint32_t> {
 protected:
  TrainingTest() : system_({"test", LogLevel::kOff}) {
    job_.options.workers = 2;
    job_.options.summers = 1;
    job_.options.local_ranks = GetParam();
    job_.token = "token";
  }
  void start_coordinator(bool may_resume) {
    coordinator::Service::ServiceOptions options;
    options.listen = {"127.0.0.1", address_.port};
    auto service = coordinator::Service::start(system_.env(), options);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    address_ = service_->address();
    job_.may_resume = may_resume;
    ASSERT_EQ(service_->add(job_), absl::OkStatus());
  }
  template <typename Condition>
  static bool eventually(Condition condition) {
    for (const absl::Time end = absl::Now() + kPatience; absl::Now() < end; absl::SleepFor(absl::Milliseconds(5))) {
      if (condition()) return true;
    }
    return false;
  }
  coordinator::JobState::Phase phase() const { return service_->state("default")->phase; }

  SystemEnv system_;
  coordinator::Service::JobOptions job_;
  Address address_;
  std::unique_ptr<coordinator::Service> service_;
};

TEST_P(TrainingTest, ContinuesWithoutTheCoordinatorAndGetsTensorsFromTheNext) {
  start_coordinator(false);
  service::ServerOptions options;
  options.coordinator = address_;
  options.listen = {"127.0.0.1", 0};
  options.token = "token";
  auto summer = service::Server::create(system_.env(), options);
  ASSERT_TRUE(summer.ok()) << summer.status();
  absl::Status summed;
  std::thread serving([&] { summed = (*summer)->run(); });
  Schedule program;
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint32_t rank = 0; rank < 2 * GetParam(); ++rank) {
    workers.push_back(std::make_unique<Worker>(rank / GetParam(), rank % GetParam(), GetParam(), address_, &program));
  }
  const Worker& zero = *workers[0];
  // Workers are at most a step apart, so none of them has reached this step.
  const auto soon = [&] { return zero.steps() + 10; };
  EXPECT_TRUE(eventually([&] { return zero.steps() > 10; }));

  service_.reset();
  const int steps = zero.steps();
  EXPECT_TRUE(eventually([&] { return zero.steps() > steps + 200; })) << "training continues without a coordinator";
  program.second_tensor_at = soon();
  EXPECT_TRUE(eventually([&] { return zero.steps() == program.second_tensor_at; }));
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(zero.steps(), program.second_tensor_at) << "the new tensor waits for its plan";
  start_coordinator(true);
  EXPECT_TRUE(eventually([&] { return zero.steps() > program.second_tensor_at; }));
  EXPECT_EQ(phase(), coordinator::JobState::Phase::kRunning);
  program.third_tensor_at = soon();
  EXPECT_TRUE(eventually([&] { return zero.steps() > program.third_tensor_at; }));

  program.end_at = soon();
  for (const auto& worker : workers) EXPECT_EQ(worker->wait(), absl::OkStatus());
  serving.join();
  EXPECT_EQ(summed, absl::OkStatus());
  EXPECT_EQ(service_->state("default")->outcome, absl::OkStatus());
  EXPECT_EQ(service_->state("default")->summary.steps, static_cast<uint64_t>(program.end_at));
}

INSTANTIATE_TEST_SUITE_P(LocalRanks, TrainingTest, testing::Values(1, 2));

}  // namespace
}  // namespace gleaner::runtime
