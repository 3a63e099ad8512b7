// Tests that executing schedules causes no allocations after a warm-up, also while a trace is on.
#include <gtest/gtest.h>

#include <memory>
#include <tuple>
#include <utility>

#include "comm-lib/executor/executor.h"
#include "tests/manual_clock.h"
#include "tests/unit/engine/allocation_counter.h"
#include "tests/unit/executor/scheduled_plans.h"

namespace gleaner::testing {
namespace {

constexpr uint32_t kWorkers = 4;
constexpr uint64_t kBytes = 4 * 1'000;

class Job {
 public:
  Job(const char* algorithm, DataType type) : kernels_(*kernels::Kernels::choose("")) {
    recorder_.start();
    const auto plan = build_plan({.workers = kWorkers,
                                  .schedules = {{.algorithm = algorithm}},
                                  .tensors = {{.elements = kBytes / size_of(type), .partitions = 10, .type = type}}});
    for (uint32_t i = 0; i < kWorkers; ++i) {
      // The window holds slices back.
      workers_.push_back(std::make_unique<executor::Executor>(executor::Options{.worker = i, .window_bytes = 1'000},
                                                              &pool_, &kernels_, &recorder_));
      EXPECT_TRUE(workers_[i]->apply(plan, now_, actions_[i]).ok());
      for (uint32_t peer = 0; peer < kWorkers; ++peer) workers_[i]->on_connected(peer, now_, actions_[i]);
    }
  }

  // Runs one push_pull on all workers. One connection breaks on the way, and all frames come twice.
  void run_step(uint32_t step) {
    for (uint32_t i = 0; i < kWorkers; ++i) {
      // A borrowed block would cost one allocation for each piece.
      Buffer input = pool_.take(kBytes);
      const MutableBytes output = input.bytes();
      ASSERT_TRUE(
          workers_[i]->start({.input = std::move(input), .output = output, .schedule = 0}, now_, actions_[i]).ok());
    }
    workers_[step % kWorkers]->on_connected((step + 1) % kWorkers, now_, actions_[step % kWorkers]);
    for (bool sent = true; sent;) {
      sent = false;
      for (uint32_t i = 0; i < kWorkers; ++i) workers_[i]->on_tick(now_, actions_[i]);
      for (uint32_t i = 0; i < kWorkers; ++i) sent = deliver_from(i) || sent;
    }
    for (exchange::Actions& actions : actions_) {
      ASSERT_EQ(actions.done.size(), 1u);
      actions.done.clear();
    }
  }

 private:
  // Delivers what a worker sends. Returns whether there was something.
  bool deliver_from(uint32_t worker) {
    std::swap(actions_[worker].sends, sends_);
    const bool sent = !sends_.empty();
    for (exchange::Send& send : sends_) {
      for (int copy = 0; copy < 2; ++copy) {
        const absl::Status status =
            workers_[send.member]->on_frame(worker, send.header, send.payload, now_, actions_[send.member]);
        EXPECT_TRUE(status.ok()) << status;
      }
    }
    sends_.clear();
    return sent;
  }

  BufferPool pool_;
  kernels::Kernels kernels_;
  absl::Duration now_;
  ManualClock clock_;
  trace::Recorder recorder_{&clock_};
  std::vector<exchange::Actions> actions_ = std::vector<exchange::Actions>(kWorkers);
  std::vector<exchange::Send> sends_;
  std::vector<std::unique_ptr<executor::Executor>> workers_;
};

class ExecutorAllocation : public ::testing::TestWithParam<std::tuple<const char*, DataType>> {};

TEST_P(ExecutorAllocation, NoneOnceWarm) {
  Job job(std::get<0>(GetParam()), std::get<1>(GetParam()));
  for (uint32_t step = 0; step < 8; ++step) job.run_step(step);
  const Allocations before = allocations_so_far();
  for (uint32_t step = 8; step < 30; ++step) job.run_step(step);
  EXPECT_EQ(allocations_so_far().count - before.count, 0u);
}
INSTANTIATE_TEST_SUITE_P(Algorithms, ExecutorAllocation,
                         ::testing::Combine(::testing::Values("ring", "bcube", "double-tree", "gather"),
                                            ::testing::Values(DataType::kFloat32, DataType::kFloat16)));

}  // namespace
}  // namespace gleaner::testing
