// Tests with the network stages of workers and a summer in one process, over real connections, some of them through a
// damaging proxy.
#include "comm-lib/network/network_stage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "comm-lib/executor/calls.h"
#include "comm-lib/pipeline/pipeline.h"
#include "tests/manual_clock.h"
#include "tests/unit/network/proxy.h"

namespace gleaner::network {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint32_t kSummer = 2;                  // member index
constexpr uint32_t kPartitionBytes = 256 << 10;  // more than a connection through Proxy::Way::kReset carries
constexpr size_t kElements = 3 * kPartitionBytes / sizeof(float);  // one partition per member
constexpr absl::Duration kDeadline = absl::Minutes(1);
constexpr absl::Duration kTimeout = absl::Seconds(60);

transport::Settings tcp_only() {
  transport::Settings settings;
  settings.preferences.kinds = {transport::Kind::kTcp};
  return settings;
}

control::Welcome welcome(uint32_t member, uint32_t summers = 1, absl::Duration deadline = kDeadline) {
  control::Welcome welcome;
  welcome.member = member;
  welcome.workers = 2;
  welcome.summers = summers;
  welcome.secret = {1, 2, 3};
  welcome.deadline = deadline;
  return welcome;
}

// Returns the plan with these addresses of the members, which may be those of proxies.
std::shared_ptr<plan::Plan> make_plan(const std::vector<Address>& addresses) {
  auto plan = std::make_shared<plan::Plan>();
  plan->epoch = 1;
  plan->workers = 2;
  for (const Address& address : addresses) plan->members.push_back({1e9, address.to_string(), 1, {}});
  plan->tensors.push_back({"gradient", kElements, DataType::kFloat32, 0, 1});
  for (uint32_t i = 0; i < 3; ++i) {
    plan->partitions.push_back({0, i, uint64_t{i} * kPartitionBytes, kPartitionBytes, 1});
  }
  plan->first_partition = {0, 3};
  return plan;
}

// A worker whose pipeline has the network stage, below the stages that a test adds.
class Worker : private pipeline::Listener, private NetworkListener {
 public:
  struct Lost {
    uint32_t member;
    bool ends_job;
    absl::Status why;
  };

  Worker(const Env& env, uint32_t index, const kernels::Kernels* kernels,
         std::vector<std::unique_ptr<pipeline::Stage>> stages = {})
      : recorder_(env.clock), index_(index), values_(kElements) {
    NetworkOptions options;
    options.job = "job";
    options.listen = {"127.0.0.1", 0};
    options.transports = tcp_only();
    auto network = *NetworkStage::create(env, options, kernels, &recorder_, this);
    network_ = network.get();
    stages.push_back(std::move(network));
    pipeline_ = *pipeline::Pipeline::create(std::move(stages), this);
    welcome(gleaner::network::welcome(index));
  }
  void welcome(const control::Welcome& welcome) { ASSERT_EQ(pipeline_->on_event(welcome), absl::OkStatus()); }
  void prepare(const std::shared_ptr<const plan::Plan>& plan) {
    ASSERT_EQ(pipeline_->on_event(pipeline::Prepare{plan}), absl::OkStatus());
  }
  void follow(const std::shared_ptr<const plan::Plan>& plan) {
    prepare(plan);
    ASSERT_EQ(pipeline_->on_event(pipeline::Commit{plan->epoch}), absl::OkStatus());
  }
  void start(ReduceOp op = ReduceOp::kSum) {
    std::ranges::fill(values_, static_cast<float>(index_ + 1));
    done_.reset();
    const auto bytes = std::as_writable_bytes(std::span(values_));
    pipeline_->start(
        {{.id = ++push_pulls_, .tensor = 0, .op = op, .input = Buffer::borrow(bytes), .output = bytes}, {}});
  }
  NetworkStage& network() { return *network_; }
  bool has_sum() const {
    return done_.has_value() && done_->ok() && std::ranges::all_of(values_, [](float value) { return value == 3; });
  }

  pipeline::Pipeline& pipeline() { return *pipeline_; }
  const Address& address() const { return network_->address(); }
  const std::vector<Lost>& lost() const { return lost_; }
  const absl::Status& failed() const { return failed_; }
  // The epochs that other members follow, as this worker has heard.
  const std::vector<uint32_t>& by_ranks() const { return by_ranks_; }
  const std::vector<uint32_t>& by_summers() const { return by_summers_; }

 private:
  void on_done(uint64_t, const absl::Status& status) override { done_ = status; }
  void on_lost(uint32_t member, bool ends_job, const absl::Status& why) override {
    lost_.push_back({member, ends_job, why});
  }
  void on_owner_follows(uint32_t epoch, bool by_rank) override { (by_rank ? by_ranks_ : by_summers_).push_back(epoch); }
  void on_called(uint64_t, const absl::Status& outcome) override { done_ = outcome; }
  void on_failed(const absl::Status& why) override { failed_.Update(why); }

  trace::Recorder recorder_;
  const uint32_t index_;
  uint64_t push_pulls_ = 0;
  std::vector<float> values_;
  std::optional<absl::Status> done_;
  std::vector<Lost> lost_;
  absl::Status failed_;
  std::vector<uint32_t> by_ranks_, by_summers_;
  NetworkStage* network_ = nullptr;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
};

// The summer of a CPU machine, without a connection to a coordinator.
class LoneSummer : private wire::JobSecrets {
 public:
  LoneSummer(const Env& env, const kernels::Kernels* kernels)
      : recorder_(env.clock),
        summer_(env, {wire::job_number("job"), kSummer, 0}, kernels, &pool_, &recorder_),
        transport_(*transport::make_transport(env, tcp_only(), &summer_, this)),
        address_(*transport_->listen({"127.0.0.1", 0})) {}
  ~LoneSummer() override { transport_.reset(); }
  void follow(const std::shared_ptr<const plan::Plan>& plan) {
    ASSERT_EQ(summer_.prepare(plan), absl::OkStatus());
    ASSERT_EQ(summer_.commit(plan->epoch), absl::OkStatus());
  }
  void poll() { transport_->poll(absl::ZeroDuration()); }
  const Address& address() const { return address_; }

 private:
  const wire::Secret* find(uint64_t) const override { return &secret_; }

  const wire::Secret secret_{1, 2, 3};
  BufferPool pool_;
  trace::Recorder recorder_;
  service::Summer summer_;
  std::unique_ptr<transport::any::Transport> transport_;
  Address address_;
};

// Worker 0 reaches worker 1 and the summer through proxies. Time passes only while the test polls, so no machine is too
// slow for a time limit.
class NetworkStageTest : public testing::Test {
 protected:
  NetworkStageTest()
      : system_({"test", LogLevel::kOff}),
        env_{&clock_, system_.env().random, system_.env().log},
        zero_(env_, 0, &kernels_),
        one_(env_, 1, &kernels_),
        summer_(env_, &kernels_) {
    to_one_.forward_to(one_.address());
    to_summer_.forward_to(summer_.address());
  }
  void follow_all() {
    const std::vector<Address> direct = {zero_.address(), one_.address(), summer_.address()};
    summer_.follow(make_plan(direct));
    one_.follow(make_plan(direct));
    zero_.follow(make_plan({direct[0], to_one_.address(), to_summer_.address()}));
  }
  // Polls until `done` returns true, for a minute at most. `step` is the time that passes with each poll, which takes a
  // millisecond or more.
  bool poll_until(const std::function<bool()>& done, absl::Duration step = absl::Milliseconds(1)) {
    for (const absl::Time end = absl::Now() + kTimeout; absl::Now() < end; absl::SleepFor(absl::Milliseconds(1))) {
      clock_.advance(step);
      zero_.pipeline().poll();
      one_.pipeline().poll();
      summer_.poll();
      if (done()) return true;
    }
    return false;
  }

  const kernels::Kernels kernels_ = *kernels::Kernels::choose("");
  SystemEnv system_;
  ManualClock clock_;
  const Env env_;
  Proxy to_one_, to_summer_;
  Worker zero_, one_;
  LoneSummer summer_;
};

TEST_F(NetworkStageTest, SumsOverTheNetwork) {
  follow_all();
  zero_.start();
  one_.start();
  EXPECT_TRUE(poll_until([&] { return zero_.has_sum() && one_.has_sum(); }));
  EXPECT_TRUE(zero_.lost().empty());
}

// Here time passes while a message is under way, as on a network.
TEST_F(NetworkStageTest, TheOverheadOfAMessageIsMeasured) {
  follow_all();
  control::Report report;
  EXPECT_TRUE(poll_until([&] {
    zero_.network().add_figures(report);
    return report.overhead_seconds > 0;
  }));
  EXPECT_LT(report.overhead_seconds, absl::ToDoubleSeconds(clock_.since_start()) / 4);
}

class SpoiltPathTest : public NetworkStageTest, public testing::WithParamInterface<Proxy::Way> {};

TEST_P(SpoiltPathTest, ToAnotherWorkerIsReportedAndEndsTheSessionWithoutACoordinator) {
  zero_.welcome(welcome(0, 1, absl::Seconds(2)));
  to_one_.set(GetParam());
  follow_all();
  zero_.start();
  one_.start();
  const auto lost = [&] { return std::ranges::find(zero_.lost(), 1u, &Worker::Lost::member); };
  ASSERT_TRUE(poll_until([&] { return lost() != zero_.lost().end(); }, absl::Milliseconds(10)))
      << "after " << to_one_.connections() << " connections";
  EXPECT_FALSE(lost()->ends_job) << "the coordinator decides";
  EXPECT_THAT(lost()->why.message(), AllOf(HasSubstr("worker/1 at"), HasSubstr("broke without progress")));
  EXPECT_LT(to_one_.connections(), 40u);
  ASSERT_EQ(zero_.pipeline().on_event(pipeline::CoordinatorGone{absl::UnavailableError("it has ended")}),
            absl::OkStatus());
  const auto ends = [&] { return std::ranges::find(zero_.lost(), true, &Worker::Lost::ends_job); };
  ASSERT_TRUE(poll_until([&] { return ends() != zero_.lost().end(); }, absl::Milliseconds(10)));
  EXPECT_EQ(ends()->member, 1u);
  EXPECT_THAT(ends()->why.message(), HasSubstr("broke without progress"));
}

TEST_P(SpoiltPathTest, ToASummerIsReportedUntilItHeals) {
  to_summer_.set(GetParam());
  follow_all();
  zero_.start();
  one_.start();
  ASSERT_TRUE(poll_until([&] { return zero_.lost().size() >= 3; }, absl::Milliseconds(10))) << "a report may be lost";
  for (const Worker::Lost& lost : zero_.lost()) {
    EXPECT_EQ(lost.member, kSummer);
    EXPECT_FALSE(lost.ends_job);
  }
  EXPECT_THAT(zero_.lost()[0].why.message(), HasSubstr("broke without progress"));
  to_summer_.set(Proxy::Way::kPass);
  EXPECT_TRUE(poll_until([&] { return zero_.has_sum() && one_.has_sum(); }));
  const size_t reports = zero_.lost().size();
  zero_.start();
  one_.start();
  EXPECT_TRUE(poll_until([&] { return zero_.has_sum() && one_.has_sum(); }));
  EXPECT_EQ(zero_.lost().size(), reports);
}

INSTANTIATE_TEST_SUITE_P(All, SpoiltPathTest, testing::Values(Proxy::Way::kReset, Proxy::Way::kFlip),
                         [](const auto& path) { return path.param == Proxy::Way::kReset ? "Reset" : "Flip"; });

// A stage that passes everything on.
class PassThrough : public pipeline::Stage {
 public:
  bool starts_on_any_thread() const override { return true; }
};

TEST_F(NetworkStageTest, AStageAboveThatDoesNothingChangesNothing) {
  std::vector<std::unique_ptr<pipeline::Stage>> above;
  above.push_back(std::make_unique<PassThrough>());
  Worker above_zero(env_, 0, &kernels_, std::move(above));
  const auto plan = make_plan({above_zero.address(), one_.address(), summer_.address()});
  summer_.follow(plan);
  one_.follow(plan);
  above_zero.follow(plan);
  above_zero.start();
  one_.start();
  EXPECT_TRUE(poll_until([&] {
    above_zero.pipeline().poll();
    return above_zero.has_sum() && one_.has_sum() && above_zero.pipeline().connected();
  }));
  EXPECT_TRUE(above_zero.pipeline().starts_on_any_thread());
}

TEST_F(NetworkStageTest, RefusesImpossibleSchedules) {
  const std::vector<Address> direct = {zero_.address(), one_.address(), summer_.address()};
  auto plan = make_plan(direct);
  plan->schedules.push_back({"bcube", {}, 5, {}});
  plan->tensors[0].schedule = 0;
  const absl::Status status = zero_.pipeline().on_event(pipeline::Prepare{plan});
  EXPECT_THAT(status.message(), HasSubstr("schedule 0 (bcube), which 2 workers can't execute"));
  follow_all();
  zero_.start();
  one_.start();
  EXPECT_TRUE(poll_until([&] { return zero_.has_sum() && one_.has_sum(); })) << "the refused plan leaves no trace";
}

TEST_F(NetworkStageTest, WithoutACoordinatorASummerOutOfReachEndsTheSession) {
  to_summer_.set(Proxy::Way::kReset);
  follow_all();
  ASSERT_EQ(zero_.pipeline().on_event(pipeline::CoordinatorLost()), absl::OkStatus());
  ASSERT_EQ(zero_.pipeline().on_event(pipeline::CoordinatorGone{absl::UnavailableError("it ended the stream")}),
            absl::OkStatus());
  zero_.start();
  one_.start();
  ASSERT_TRUE(poll_until([&] { return !zero_.failed().ok(); }, absl::Milliseconds(100)));
  EXPECT_THAT(zero_.failed().message(), AllOf(HasSubstr("summer/0 at"), HasSubstr("no coordinator is left")));
  EXPECT_TRUE(zero_.lost().empty()) << "there is no coordinator to report to";
}

TEST_F(NetworkStageTest, ARefusalEndsTheSessionWithItsText) {
  follow_all();
  zero_.start(ReduceOp::kSum);
  ASSERT_TRUE(poll_until([&] { return zero_.pipeline().connected(); }));
  one_.start(ReduceOp::kAverage);
  ASSERT_TRUE(poll_until([&] { return !one_.failed().ok() || !zero_.failed().ok(); }));
  const absl::Status& told = one_.failed().ok() ? zero_.failed() : one_.failed();
  EXPECT_THAT(std::string(told.message()),
              StartsWith("tensor 'gradient': in its 1st push_pull worker 0 asks for its sum, worker 1 for its "
                         "average; "));
  EXPECT_TRUE(absl::IsInvalidArgument(told));
}

TEST_F(NetworkStageTest, ARemovedGroupOfWhichAnotherWorkerMakesCallsEndsTheSession) {
  follow_all();
  std::vector<std::byte> data(4);
  for (Worker* const worker : {&zero_, &one_}) ASSERT_EQ(worker->network().add_group(1, {0, 1}), absl::OkStatus());
  ASSERT_TRUE(poll_until([&] { return zero_.pipeline().connected() && one_.pipeline().connected(); }));
  one_.network().start_call(
      {.id = 1, .group = 1, .collective = collective::Postcondition::kBroadcast, .root = 1, .input = data});
  int polls = 0;
  poll_until([&] { return ++polls == 100; });  // the slice has arrived, or arrives after the removal
  ASSERT_EQ(zero_.network().remove_group(1), absl::OkStatus());
  ASSERT_TRUE(poll_until([&] { return !zero_.failed().ok(); }));
  EXPECT_THAT(std::string(zero_.failed().message()), HasSubstr("worker 0 has removed the group"));
}

TEST_F(NetworkStageTest, ARepeatedWelcomeKeepsConnections) {
  const std::vector<Address> direct = {zero_.address(), one_.address(), summer_.address()};
  summer_.follow(make_plan(direct));
  zero_.follow(make_plan(direct));
  ASSERT_TRUE(poll_until([&] { return zero_.pipeline().connected(); }));
  one_.welcome(welcome(1, 2));
  one_.follow(make_plan(direct));
  zero_.start();
  one_.start();
  EXPECT_TRUE(poll_until([&] { return zero_.has_sum() && one_.has_sum(); }));
}

TEST_F(NetworkStageTest, OwnersSayWhichPlanTheyFollow) {
  const std::vector<Address> direct = {zero_.address(), one_.address(), summer_.address()};
  const auto first = make_plan(direct);
  summer_.follow(first);
  zero_.follow(first);
  one_.follow(first);
  ASSERT_TRUE(poll_until([&] { return zero_.pipeline().connected() && one_.pipeline().connected(); }));
  EXPECT_THAT(one_.by_ranks(), ElementsAre());
  auto second = std::make_shared<plan::Plan>(*first);
  ++second->epoch;
  one_.prepare(second);
  zero_.follow(second);
  ASSERT_TRUE(poll_until([&] { return !one_.by_ranks().empty(); }));
  EXPECT_THAT(one_.by_ranks(), ElementsAre(second->epoch)) << "the epoch is reported once";
  summer_.follow(second);
  ASSERT_TRUE(poll_until([&] { return !one_.by_summers().empty(); }));
  EXPECT_THAT(one_.by_summers(), ElementsAre(second->epoch));
  EXPECT_THAT(zero_.by_ranks(), ElementsAre()) << "the epoch was reported before";
}

TEST_F(NetworkStageTest, AWelcomeToAnotherPlaceMakesOtherWorkersReconnect) {
  const std::vector<Address> direct = {zero_.address(), one_.address(), summer_.address()};
  one_.welcome(welcome(0));  // its first Welcome gives it another member index
  summer_.follow(make_plan(direct));
  zero_.follow(make_plan(direct));
  ASSERT_TRUE(poll_until([&] { return zero_.pipeline().connected(); }));
  one_.welcome(welcome(1));
  one_.follow(make_plan(direct));
  zero_.start();
  one_.start();
  EXPECT_TRUE(poll_until([&] { return zero_.has_sum() && one_.has_sum(); }));
}

}  // namespace
}  // namespace gleaner::network
