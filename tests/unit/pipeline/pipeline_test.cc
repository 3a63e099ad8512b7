// Tests of the list of stages: the order of calls, and that a stage that does nothing changes nothing.
#include "comm-lib/pipeline/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"

namespace gleaner::pipeline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Calls = std::vector<std::string>;

// Records its calls. Passes pieces on with ids that are greater by 100, and ends them itself if it is the last stage.
class RecordingStage : public Stage {
 public:
  RecordingStage(std::string name, Calls* calls) : name_(std::move(name)), calls_(*calls) {}

  void start(PieceRequest piece) override {
    calls_.push_back(absl::StrCat(name_, " starts ", piece.id));
    if (is_last()) return in_flight_.push_back(piece.id);
    piece.id += 100;
    next().start(std::move(piece));
  }
  void on_done(uint64_t id, const absl::Status& status) override {
    calls_.push_back(absl::StrCat(name_, " is told ", id));
    finish(id - 100, status);
  }
  absl::Status on_event(const Event& event) override {
    const uint32_t epoch = plan() == nullptr ? 0 : plan()->epoch;
    calls_.push_back(absl::StrCat(name_, " gets event ", event.index(), " in epoch ", epoch));
    return refusal;
  }
  void poll() override {
    calls_.push_back(absl::StrCat(name_, " polls"));
    for (const uint64_t id : std::exchange(in_flight_, {})) finish(id, absl::OkStatus());
  }
  void advance() override { calls_.push_back(absl::StrCat(name_, " advances")); }
  void fail(const absl::Status& status) override {
    calls_.push_back(absl::StrCat(name_, " fails: ", status.message()));
  }
  bool has_work() const override { return works; }
  bool connected() const override { return is_connected; }
  bool idle() const override { return is_idle; }
  std::string describe_waiting() const override { return absl::StrCat("peers of ", name_); }
  int descriptor() const override { return -1; }
  void complain(const absl::Status& why) { report_failure(why); }

  absl::Status refusal;
  bool works = false, is_connected = true, is_idle = true;

 private:
  const std::string name_;
  Calls& calls_;
  std::vector<uint64_t> in_flight_;
};

class PassThrough : public Stage {};

class PipelineTest : public testing::Test, public Listener {
 protected:
  // Makes a pipeline of the stages "upper" and "lower", with `between` between them.
  void make(std::unique_ptr<Stage> between = nullptr) {
    std::vector<std::unique_ptr<Stage>> stages;
    stages.push_back(std::make_unique<RecordingStage>("upper", &calls_));
    if (between != nullptr) stages.push_back(std::move(between));
    stages.push_back(std::make_unique<RecordingStage>("lower", &calls_));
    upper_ = static_cast<RecordingStage*>(stages.front().get());
    lower_ = static_cast<RecordingStage*>(stages.back().get());
    pipeline_ = *Pipeline::create(std::move(stages), this);
  }
  // Gives the pipeline a plan, a piece and every kind of call, and returns what its stages and its listener saw.
  Calls run() {
    calls_.clear();
    auto plan = std::make_shared<plan::Plan>();
    plan->epoch = 7;
    EXPECT_EQ(pipeline_->on_event(Welcome()), absl::OkStatus());
    EXPECT_EQ(pipeline_->on_event(Prepare{plan}), absl::OkStatus());
    EXPECT_EQ(pipeline_->on_event(Commit{7}), absl::OkStatus());
    PieceRequest piece;
    piece.id = 5;
    pipeline_->start(std::move(piece));
    pipeline_->advance();
    pipeline_->poll();
    pipeline_->fail(absl::UnavailableError("worker/1 is lost"));
    calls_.push_back(pipeline_->describe_waiting());
    return calls_;
  }
  void on_done(uint64_t id, const absl::Status& status) override {
    calls_.push_back(absl::StrCat("rank is told ", id, status.ok() ? "" : " failed"));
  }
  void on_failed(const absl::Status& status) override { failure_ = status; }

  Calls calls_;
  absl::Status failure_;
  RecordingStage* upper_ = nullptr;
  RecordingStage* lower_ = nullptr;
  std::unique_ptr<Pipeline> pipeline_;
};

TEST_F(PipelineTest, PiecesGoDownAndAllElseComesFromTheLastStage) {
  make();
  EXPECT_THAT(run(), ElementsAre("lower gets event 0 in epoch 0", "upper gets event 0 in epoch 0",  // Welcome
                                 "lower gets event 1 in epoch 0", "upper gets event 1 in epoch 0",  // Prepare
                                 "lower gets event 2 in epoch 7", "upper gets event 2 in epoch 7",  // Commit
                                 "upper starts 5", "lower starts 105", "upper advances", "lower advances",
                                 "lower polls", "upper is told 105", "rank is told 5", "upper polls",
                                 "lower fails: worker/1 is lost", "upper fails: worker/1 is lost", "peers of lower"));
  lower_->complain(absl::UnavailableError("no way"));
  EXPECT_EQ(failure_, absl::UnavailableError("no way"));
}

TEST_F(PipelineTest, AStageThatDoesNothingChangesNothing) {
  make();
  const Calls without = run();
  make(std::make_unique<PassThrough>());
  EXPECT_EQ(run(), without);
}

TEST_F(PipelineTest, CommitsOnlyThePlanThatItHasPrepared) {
  make();
  auto plan = std::make_shared<plan::Plan>();
  plan->epoch = 3;
  EXPECT_THAT(pipeline_->on_event(Commit{3}).message(), HasSubstr("epoch 3, which this rank has not prepared"));
  EXPECT_THAT(calls_, IsEmpty()) << "no stage gets such an event";
  upper_->refusal = absl::UnimplementedError("too new");
  EXPECT_TRUE(absl::IsUnimplemented(pipeline_->on_event(Prepare{plan})));
  upper_->refusal = absl::OkStatus();
  EXPECT_FALSE(pipeline_->on_event(Commit{3}).ok()) << "the plan was refused";
  ASSERT_TRUE(pipeline_->on_event(Prepare{plan}).ok());
  ASSERT_TRUE(pipeline_->on_event(Welcome()).ok());
  EXPECT_FALSE(pipeline_->on_event(Commit{3}).ok()) << "a welcome came after the plan";
  ASSERT_TRUE(pipeline_->on_event(Prepare{plan}).ok());
  EXPECT_FALSE(pipeline_->on_event(Commit{2}).ok());
  EXPECT_EQ(pipeline_->plan(), nullptr);
  EXPECT_TRUE(pipeline_->on_event(Commit{3}).ok());
  EXPECT_EQ(pipeline_->plan(), plan);
  EXPECT_FALSE(pipeline_->on_event(Commit{3}).ok()) << "the plan is in force";
}

TEST_F(PipelineTest, CombinesTheStatesOfItsStages) {
  make();
  EXPECT_TRUE(pipeline_->connected() && pipeline_->idle() && pipeline_->may_leave() && !pipeline_->has_work());
  upper_->is_connected = false;
  EXPECT_FALSE(pipeline_->connected());
  EXPECT_EQ(pipeline_->describe_waiting(), "peers of upper") << "the lower stage is connected";
  lower_->is_idle = false;
  EXPECT_FALSE(pipeline_->idle() || pipeline_->may_leave());
  upper_->works = true;
  EXPECT_TRUE(pipeline_->has_work());
  EXPECT_FALSE(pipeline_->starts_on_any_thread()) << "stages belong to one thread unless they say otherwise";
}

TEST_F(PipelineTest, WakeEndsAWait) {
  make();
  pipeline_->wake();
  pipeline_->wait(absl::InfiniteDuration());
  std::thread other([&] { pipeline_->wake(); });
  pipeline_->wait(absl::InfiniteDuration());
  other.join();
}

// A stage with its own way to wait, and possibly one with a descriptor beside it.
class WaitingStage : public Stage, public Waiter {
 public:
  explicit WaitingStage(Calls* calls) : calls_(*calls), waker_(*Waker::create()) {}
  void wait(absl::Duration) override { calls_.push_back("waits"); }
  bool spin_before_wait(absl::Duration) override {
    calls_.push_back("spins");
    return false;
  }
  void wake() override { waker_->wake(); }
  int descriptor() const override { return waker_->descriptor(); }
  Waiter* waiter() override { return this; }
  bool starts_on_any_thread() const override { return true; }

 private:
  Calls& calls_;
  std::unique_ptr<Waker> waker_;
};

class DescriptorStage : public Stage {
 public:
  int descriptor() const override { return waker->descriptor(); }
  bool starts_on_any_thread() const override { return true; }
  std::unique_ptr<Waker> waker = *Waker::create();
};

TEST_F(PipelineTest, WaitsInTheStagesOwnWayIfNoOtherStageHasADescriptor) {
  std::vector<std::unique_ptr<Stage>> alone;
  alone.push_back(std::make_unique<PassThrough>());
  alone.push_back(std::make_unique<WaitingStage>(&calls_));
  auto pipeline = *Pipeline::create(std::move(alone), this);
  pipeline->wait(absl::InfiniteDuration());
  EXPECT_THAT(calls_, ElementsAre("waits"));
  EXPECT_FALSE(pipeline->starts_on_any_thread()) << "one of the stages belongs to one thread";

  calls_.clear();
  std::vector<std::unique_ptr<Stage>> both;
  both.push_back(std::make_unique<DescriptorStage>());
  both.push_back(std::make_unique<WaitingStage>(&calls_));
  Waker& waker = *static_cast<DescriptorStage&>(*both.front()).waker;
  pipeline = *Pipeline::create(std::move(both), this);
  waker.wake();
  pipeline->wait(absl::InfiniteDuration());
  waker.clear();
  pipeline->wake();
  pipeline->wait(absl::InfiniteDuration());
  EXPECT_THAT(calls_, ElementsAre("spins", "spins"));
  EXPECT_TRUE(pipeline->starts_on_any_thread());
}

}  // namespace
}  // namespace gleaner::pipeline
