// Tests of training while the coordinator restarts, with real ranks, a real summer and real connections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "comm-lib/runtime/rank.h"
#include "coordinator/service/service.h"
#include "summation-service/service/server.h"
#include "tests/held_port.h"

namespace gleaner::runtime {
namespace {

constexpr uint64_t kElements = 100'000;
constexpr absl::Duration kPatience = absl::Seconds(60);

// The schedule of all workers, by step. A change takes effect at a step that no worker has begun, so all workers follow
// it at the same step.
class Schedule {
 public:
  // Returns how many tensors the step has; 0: training has ended.
  int begin(int step) {
    absl::MutexLock lock(&mutex_);
    begun_ = std::max(begun_, step);
    if (step >= end_) return 0;
    return 1 + static_cast<int>(std::ranges::count_if(additions_, [step](int at) { return step >= at; }));
  }
  // Each function returns the first step that it changes.
  int add_tensor() {
    absl::MutexLock lock(&mutex_);
    additions_.push_back(begun_ + 1);
    return begun_ + 1;
  }
  int end() {
    absl::MutexLock lock(&mutex_);
    return end_ = begun_ + 1;
  }

 private:
  absl::Mutex mutex_;
  int begun_ ABSL_GUARDED_BY(mutex_) = 0;                              // the last step that a worker has begun
  std::vector<int> additions_ ABSL_GUARDED_BY(mutex_);                 // the steps from which there is one more tensor
  int end_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<int>::max();  // the step at which training ends
};

class Worker {
 public:
  Worker(uint32_t index, uint32_t local_rank, uint32_t local_size, const Address& coordinator, Schedule* schedule)
      : index_(index), sum_(static_cast<float>(3 * local_size)), schedule_(*schedule) {
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
    for (int tensors = 0; status.ok() && (tensors = schedule_.begin(steps_)) > 0; ++steps_) {
      for (int i = 0; i < tensors && status.ok(); ++i) status = push_pull(**rank, absl::StrCat("tensor ", i));
      (*rank)->step();
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
    if (absl::Status outcome = rank.wait(*handle, kPatience); !outcome.ok()) return outcome;
    for (size_t i = 0; i < values.size(); ++i) {
      if (values[i] != static_cast<float>(i % 1000) * sum_) return absl::DataLossError(absl::StrCat("element ", i));
    }
    return absl::OkStatus();
  }

  const uint32_t index_;
  const float sum_;  // sum of all ranks' factors
  Schedule& schedule_;
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
    // No member of a slow machine counts as silent.
    job_.options.deadline = job_.options.summer_timeout = absl::Minutes(5);
    job_.options.local_ranks = GetParam();
    job_.token = "token";
  }
  void start_coordinator(bool may_resume) {
    coordinator::Service::ServiceOptions options;
    options.listen = address_;
    auto service = coordinator::Service::start(system_.env(), options);
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
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
  const HeldPort port_;
  const Address address_{"127.0.0.1", port_.port()};  // of all coordinators
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
  Schedule schedule;
  std::vector<std::unique_ptr<Worker>> workers;
  for (uint32_t rank = 0; rank < 2 * GetParam(); ++rank) {
    workers.push_back(std::make_unique<Worker>(rank / GetParam(), rank % GetParam(), GetParam(), address_, &schedule));
  }
  const auto all_reach = [&](int step) {
    return eventually([&] { return std::ranges::all_of(workers, [&](auto& each) { return each->steps() >= step; }); });
  };
  EXPECT_TRUE(all_reach(10));

  service_.reset();
  EXPECT_TRUE(all_reach(workers[0]->steps() + 50)) << "training continues without a coordinator";
  const int second = schedule.add_tensor();
  EXPECT_TRUE(all_reach(second));
  for (const auto& worker : workers) EXPECT_EQ(worker->steps(), second) << "the new tensor waits for its plan";
  start_coordinator(true);
  EXPECT_TRUE(all_reach(second + 1));
  EXPECT_TRUE(eventually([&] { return phase() == coordinator::JobState::Phase::kRunning; }));
  EXPECT_TRUE(all_reach(schedule.add_tensor() + 1));

  const int end = schedule.end();
  for (const auto& worker : workers) EXPECT_EQ(worker->wait(), absl::OkStatus());
  serving.join();
  EXPECT_EQ(summed, absl::OkStatus());
  EXPECT_TRUE(eventually([&] { return service_->state("default")->outcome == absl::OkStatus(); }));
  EXPECT_EQ(service_->state("default")->summary.whole.steps, static_cast<uint64_t>(end));
}

INSTANTIATE_TEST_SUITE_P(LocalRanks, TrainingTest, testing::Values(1, 2));

}  // namespace
}  // namespace gleaner::runtime
