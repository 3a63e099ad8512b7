// Tests of the autoscaler's inputs: jobs, their summers' machines, and machines that other jobs use.
#include "operator/service/scaling_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace gleaner::operation {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

std::shared_ptr<placement::Machine> machine(const std::string& name, double cpus, double bits) {
  auto profile = std::make_shared<api::NodeProfile>();
  profile->meta.name = name;
  api::NodeProfileStatus& status = profile->status;
  status.observed_time = kNow - absl::Seconds(1);
  status.cpus = 8;
  status.memory_bytes = status.spare.memory_bytes = 1ULL << 33;
  status.bits_per_second = 10e9;
  status.speed_source = api::SpeedSource::kLabel;
  status.spare.cpus = cpus;
  status.spare.bits_per_second = bits;
  auto made = std::make_shared<placement::Machine>();
  made->name = name;
  made->profile = std::move(profile);
  return made;
}

std::shared_ptr<reconcile::PodView> pod(const std::string& role, uint32_t index, const std::string& node) {
  auto made = std::make_shared<reconcile::PodView>();
  made->name = absl::StrCat(role, "-", index);
  made->role = role;
  made->index = index;
  made->node = node;
  made->phase = reconcile::PodView::Phase::kRunning;
  made->created = kNow - absl::Minutes(5);
  made->priority = 7;
  if (role == "summer") {
    made->cpus = 0.1;
    made->bits_per_second = 1e9;
  }
  return made;
}

reconcile::Observation job(const std::string& name) {
  reconcile::Observation observation;
  observation.job.meta.ns = "team";
  observation.job.meta.name = name;
  observation.job.workers.replicas = 2;
  observation.job.communication.summers.max = 3;
  observation.pods = {pod("worker", 0, "w0"), pod("worker", 1, "w1"), pod("summer", 0, "s0")};
  for (const char* node : {"w0", "w1", "s0"}) observation.nodes[node] = {true, true, 10e9};
  observation.session.emplace();
  observation.session->phase = coordinator::JobState::Phase::kRunning;
  observation.session->epoch = 2;
  observation.session->summary.whole.bytes_per_step = 1e8;
  return observation;
}

// Returns machines; s0 has a summer of the job.
Machines machines() {
  auto taken = machine("s0", 4, 2e9);
  taken->commitment = {1, 0.1, 1e9};
  return {machine("w0", 4, 5e9), machine("w1", 4, 5e9), taken, machine("s1", 4, 3e9)};
}

TEST(ScalingView, HasInputsOfDecision) {
  const auto views = scaling_views({job("a")}, machines(), nullptr, kNow);
  ASSERT_THAT(views, SizeIs(1));
  const autoscale::Job& told = views[0].job;
  EXPECT_EQ(told.key, "team/a");
  EXPECT_EQ(told.priority, 7);
  EXPECT_EQ(told.bytes_per_step, 1e8);
  EXPECT_DOUBLE_EQ(told.summer_cpus, 0.1);
  ASSERT_THAT(told.summers, SizeIs(1));
  EXPECT_TRUE(told.summers[0].running);
  EXPECT_EQ(told.summers[0].age, absl::Minutes(5));
  EXPECT_TRUE(told.summers[0].suitability->fits);
  ASSERT_THAT(told.candidates, SizeIs(1)) << "machines of this job's workers and summers are no candidates";
  EXPECT_EQ(told.candidates[0].node, "s1");
  EXPECT_FALSE(told.candidates[0].spare_cpus.has_value());
}

TEST(ScalingView, OwnCommitmentCountsAsSpare) {
  const auto views = scaling_views({job("a")}, machines(), nullptr, kNow);
  ASSERT_THAT(views[0].spare_bits_per_second, SizeIs(1));
  EXPECT_EQ(views[0].spare_bits_per_second[0].second, 2e9) << "the summer's own commitment of 1e9 counts as spare";
}

TEST(ScalingView, OtherLoadMakesMachineUnsuitable) {
  Machines all = machines();
  all[2] = machine("s0", 0.05, 2e9);
  const auto views = scaling_views({job("a")}, all, nullptr, kNow);
  EXPECT_FALSE(views[0].job.summers[0].suitability->fits);
  all[2] = machine("s0", 4, 5e7);
  EXPECT_FALSE(scaling_views({job("a")}, all, nullptr, kNow)[0].job.summers[0].suitability->fits)
      << "the bandwidth is less than a tenth of the summer's share";
}

TEST(ScalingView, StaleProfileMakesSuitabilityUnknown) {
  Machines all = machines();
  auto silent = machine("s0", 0, 0);
  auto profile = std::make_shared<api::NodeProfile>(*silent->profile);
  profile->status.observed_time = kNow - absl::Minutes(3);
  silent->profile = profile;
  all[2] = silent;
  EXPECT_FALSE(scaling_views({job("a")}, all, nullptr, kNow)[0].job.summers[0].suitability.has_value());
}

TEST(ScalingView, MachinesOfOtherJobsAreContested) {
  reconcile::Observation other = job("b");
  other.pods = {pod("worker", 0, "w0"), pod("worker", 1, "w1")};
  Machines all = machines();
  all.pop_back();
  auto full = machine("s0", 4, 1e9);
  full->commitment = {1, 0.1, 1e9};
  all[2] = full;
  const auto views = scaling_views({job("a"), other}, all, nullptr, kNow);
  EXPECT_THAT(views[1].job.candidates, IsEmpty());
  ASSERT_THAT(views[1].job.contested, SizeIs(1));
  EXPECT_EQ(views[1].job.contested[0].holder, "team/a");
  EXPECT_EQ(views[1].job.contested[0].index, 0U);
  EXPECT_THAT(views[0].job.contested, IsEmpty());
}

TEST(ScalingView, OnlyJobsThatHaveBegunAreScaled) {
  const reconcile::Observation observation = job("a");
  EXPECT_TRUE(may_scale(observation.job, *observation.session));
  coordinator::JobState session = *observation.session;
  session.phase = coordinator::JobState::Phase::kReattaching;
  EXPECT_FALSE(may_scale(observation.job, session));
  session = *observation.session;
  session.outcome = absl::OkStatus();
  EXPECT_FALSE(may_scale(observation.job, session));
  api::TrainingJob alone = observation.job;
  alone.communication.summers.max = 0;
  EXPECT_FALSE(may_scale(alone, *observation.session));
}

}  // namespace
}  // namespace gleaner::operation
