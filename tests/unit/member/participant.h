// Participant: a member of a job for tests. It follows the coordinator's orders and records them.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/member/client.h"

namespace gleaner {

inline constexpr char kToken[] = "0123456789abcdef";  // of the job
inline constexpr absl::Duration kPatience = absl::Seconds(60);

class Participant : private member::Listener {
 public:
  Participant(const Env& env, const member::JoinOptions& options) {
    auto client = member::Client::start(env, options, this);
    EXPECT_TRUE(client.ok()) << client.status();
    absl::MutexLock lock(&mutex_);
    client_ = *std::move(client);
  }
  ~Participant() override { client().stop(); }

  member::Client& client() {
    absl::MutexLock lock(&mutex_);
    // Events may come before start() has returned the client.
    const auto is_there = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return client_ != nullptr; };
    mutex_.Await(absl::Condition(&is_there));
    return *client_;
  }

  std::optional<control::Welcome> await_welcome() {
    await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return welcome_.has_value() || failure_.has_value(); });
    absl::MutexLock lock(&mutex_);
    return welcome_;
  }
  // Waits until the epoch of the plan in force is at least this, and returns the plan; null if the job failed before.
  std::shared_ptr<const plan::Plan> await_epoch(uint32_t epoch) {
    await([this, epoch]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return (committed_ != nullptr && committed_->epoch >= epoch) || failure_.has_value();
    });
    absl::MutexLock lock(&mutex_);
    return committed_ != nullptr && committed_->epoch >= epoch ? committed_ : nullptr;
  }
  absl::Status await_failure() {
    await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return failure_.has_value() || finished_; });
    absl::MutexLock lock(&mutex_);
    return failure_.value_or(absl::OkStatus());
  }
  bool await_finished() {
    await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return failure_.has_value() || finished_; });
    absl::MutexLock lock(&mutex_);
    return finished_;
  }
  bool await_coordinator_lost() {
    await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return coordinator_lost_ || failure_.has_value(); });
    absl::MutexLock lock(&mutex_);
    return coordinator_lost_;
  }
  // Waits until the coordinator was found again this many times.
  bool await_coordinator_found(int times = 1) {
    await([this, times]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return found_ >= times || failure_.has_value(); });
    absl::MutexLock lock(&mutex_);
    return found_ >= times;
  }
  int coordinators_found() {
    absl::MutexLock lock(&mutex_);
    return found_;
  }
  bool await_coordinator_gone() {
    await([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return coordinator_gone_ || failure_.has_value(); });
    absl::MutexLock lock(&mutex_);
    return coordinator_gone_;
  }
  int welcomes() {
    absl::MutexLock lock(&mutex_);
    return welcomes_;
  }
  bool failed() {
    absl::MutexLock lock(&mutex_);
    return failure_.has_value();
  }
  // Leaves, again if a plan comes first, as a worker does that has nothing in flight.
  void leave(absl::Duration timeout = kPatience) {
    while (!client().leave(absl::OkStatus(), timeout)) {
    }
  }
  // Sets the answer to a request for its recording. Without it, the participant does not answer such requests.
  void have_recorded(trace::Recording recording) {
    absl::MutexLock lock(&mutex_);
    recording_ = std::move(recording);
  }
  bool await_orders(const std::vector<control::TraceOrder>& orders) {
    await([this, &orders]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return orders_.size() >= orders.size(); });
    absl::MutexLock lock(&mutex_);
    return orders_ == orders;
  }
  void refuse_plans(absl::Status why) {
    absl::MutexLock lock(&mutex_);
    refusal_ = std::move(why);
  }

 private:
  template <typename Condition>
  void await(Condition condition) {
    absl::MutexLock lock(&mutex_);
    EXPECT_TRUE(mutex_.AwaitWithTimeout(absl::Condition(&condition), kPatience)) << "nothing happened";
  }
  void on_event(const member::Event& event) override {
    std::visit([this](const auto& each) { handle(each); }, event);
  }
  void handle(const control::Welcome& welcome) {
    absl::MutexLock lock(&mutex_);
    welcome_ = welcome;
    ++welcomes_;
  }
  void handle(const control::Prepare& prepare) {
    absl::Status refusal;
    {
      absl::MutexLock lock(&mutex_);
      prepared_ = prepare.plan;
      refusal = refusal_;
    }
    if (refusal.ok()) {
      client().acknowledge(prepare.plan->epoch);
    } else {
      client().refuse(prepare.plan->epoch, refusal);
    }
  }
  void handle(const control::Commit& commit) {
    absl::MutexLock lock(&mutex_);
    EXPECT_EQ(prepared_->epoch, commit.epoch);
    committed_ = prepared_;
  }
  void handle(const control::Failed& failed) { fail(failed.status); }
  void handle(const control::Regroup& regroup) { fail(regroup.why); }
  void fail(const absl::Status& status) {
    absl::MutexLock lock(&mutex_);
    EXPECT_FALSE(failure_.has_value() || finished_) << "Failed is the last event";
    failure_ = status;
  }
  void handle(const control::Finished&) {
    absl::MutexLock lock(&mutex_);
    finished_ = true;
  }
  void handle(const member::CoordinatorLost&) {
    absl::MutexLock lock(&mutex_);
    coordinator_lost_ = true;
  }
  void handle(const member::CoordinatorGone&) {
    absl::MutexLock lock(&mutex_);
    coordinator_gone_ = true;
  }
  void handle(const member::CoordinatorFound&) {
    absl::MutexLock lock(&mutex_);
    ++found_;
  }
  void handle(const control::Trace& trace) {
    std::optional<trace::Recording> answer;
    {
      absl::MutexLock lock(&mutex_);
      orders_.push_back(trace.order);
      if (trace.order == control::TraceOrder::kSend) answer = recording_;
    }
    if (answer.has_value()) client().send_trace(trace.recording, *std::move(answer));
  }
  template <typename Other>
  void handle(const Other&) {}

  absl::Mutex mutex_;
  std::unique_ptr<member::Client> client_ ABSL_GUARDED_BY(mutex_);
  std::optional<control::Welcome> welcome_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const plan::Plan> prepared_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const plan::Plan> committed_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> failure_ ABSL_GUARDED_BY(mutex_);
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool coordinator_lost_ ABSL_GUARDED_BY(mutex_) = false;
  bool coordinator_gone_ ABSL_GUARDED_BY(mutex_) = false;
  int found_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<trace::Recording> recording_ ABSL_GUARDED_BY(mutex_);
  std::vector<control::TraceOrder> orders_ ABSL_GUARDED_BY(mutex_);
  int welcomes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gleaner
