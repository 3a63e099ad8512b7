#include "common/strategy/choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "common/strategy/models.h"
#include "common/topology/builders.h"

namespace gleaner::strategy {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr double kRoundTrip = 100e-6;

plan::Plan plan_of(uint32_t workers, uint32_t summers) {
  plan::Plan plan;
  plan.epoch = 1;
  plan.workers = workers;
  for (uint32_t i = 0; i < workers + summers; ++i) plan.members.push_back({10e9});
  plan.first_partition = {0};
  return plan;
}

std::string chosen(plan::Plan& plan, std::vector<plan::Tensor>& tensors) {
  const auto models = model(request_for(plan, nullptr, kRoundTrip, 0, true));
  EXPECT_TRUE(models.ok()) << models.status();
  return choose(plan, tensors, models->candidates, models->fleet);
}

TEST(Choice, NetworkHasWorkersAndSummersThatOwn) {
  plan::Plan plan = plan_of(3, 3);
  plan.members[3] = {};
  plan.members[4].on_standby = true;
  plan.members[0].bits_per_second = 1e9;
  const auto network = network_of(plan, kRoundTrip, 3e-6);
  ASSERT_TRUE(network.ok()) << network.status();
  ASSERT_EQ(network->topology.host_count(), 4u);
  EXPECT_EQ(network->topology.name(3), "summer/2");
  EXPECT_EQ(network->topology.bits_per_second(0), 1e9);
  EXPECT_EQ(network->topology.latency_seconds(0), kRoundTrip / 4);
  for (const topology::Host& host : network->topology.hosts()) EXPECT_EQ(host.overhead_seconds, 3e-6);
}

TEST(Choice, TheOverheadThatANetworkStatesCounts) {
  const topology::Topology switched = *topology::racks(1, 2, {10e9, 10e9, 10e-6});
  std::vector<topology::Host> hosts = switched.hosts();
  hosts[0].overhead_seconds = 7e-6;
  const JobNetwork known{.topology = *topology::Topology::make(hosts, switched.switches(), switched.links())};
  const auto network = network_of(plan_of(2, 0), kRoundTrip, 3e-6, &known);
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(network->topology.hosts()[0].overhead_seconds, 7e-6);
  EXPECT_EQ(network->topology.hosts()[1].overhead_seconds, 3e-6);
}

TEST(Choice, SummersAreAtTheirSwitches) {
  JobNetwork known{.topology = *topology::racks(2, 2, {10e9, 5e9, 10e-6})};
  known.summers_at = std::vector<uint32_t>{0, 0, 0, 2};  // summers 0 to 2 are at the core, and 3 is in the second rack
  known.summer_latency_seconds = {70e-6, 10e-6, 20e-6};
  EXPECT_TRUE(validate(known, 4, 3).ok());
  plan::Plan plan = plan_of(4, 3);
  plan.members[5] = {};  // an empty place
  plan.members[6].bits_per_second = 3e9;
  const auto network = network_of(plan, 0, 0, &known);
  ASSERT_TRUE(network.ok()) << network.status();
  const topology::Topology& made = network->topology;
  ASSERT_EQ(made.host_count(), 6u);
  EXPECT_EQ(made.name(5), "summer/2");
  const auto at = made.only_switch(5);
  ASSERT_TRUE(at.has_value());
  EXPECT_EQ(made.name(at->node), "core");
  EXPECT_EQ(made.bits_per_second(at->channel), 3e9);
  EXPECT_EQ(made.latency_seconds(at->channel), 70e-6);
  EXPECT_EQ(made.name(made.only_switch(3)->node), "rack-1");
  EXPECT_EQ(switch_of(known, 3), 2u);
  EXPECT_EQ(switch_of(known, 7), 0u) << "summer 7 is not known";
  const std::vector<uint32_t> switches = {1, 1, 2};
  const auto placed = network_of(plan, 0, 0, &known, switches);
  ASSERT_TRUE(placed.ok()) << placed.status();
  EXPECT_EQ(placed->topology.name(placed->topology.only_switch(4)->node), "rack-0");
  EXPECT_EQ(placed->topology.name(placed->topology.only_switch(5)->node), "rack-1");
  EXPECT_EQ(placed->topology.latency_seconds(placed->topology.only_switch(5)->channel), 20e-6);
  known.summers_at.reset();
  EXPECT_FALSE(validate(known, 4, 3).ok()) << "each summer needs a host";
}

// A link may turn out to be faster than it was taken to be when the job began.
TEST(Choice, LinksOfTheClustersNetworkAreThoseOfMembers) {
  JobNetwork known{.topology = *topology::racks(2, 2, {10e9, 5e9, 10e-6}), .summers_at = std::vector<uint32_t>()};
  plan::Plan plan = plan_of(4, 0);
  plan.members[0].bits_per_second = 25e9;
  plan.members[1].bits_per_second = 3e9;
  plan.members[2].bandwidth_assumed = true;
  const topology::Topology made = network_of(plan, 0, 0, &known)->topology;
  EXPECT_EQ(made.bits_per_second(made.only_switch(0)->channel), 25e9);
  EXPECT_EQ(made.bits_per_second(made.only_switch(1)->channel), 3e9);
  EXPECT_EQ(made.bits_per_second(made.only_switch(2)->channel), 10e9);
}

TEST(Choice, EqualStrategiesShareASchedule) {
  plan::Plan plan = plan_of(2, 0);
  std::vector<plan::Tensor> tensors = {{"a", 256}, {"b", 256}, {"large", 64 << 20}};
  const std::string line = chosen(plan, tensors);
  EXPECT_THAT(plan.schedules, SizeIs(1));
  EXPECT_EQ(tensors[0].schedule, 0u);
  EXPECT_EQ(tensors[1].schedule, 0u);
  EXPECT_EQ(tensors[2].schedule, std::nullopt);
  EXPECT_THAT(line, HasSubstr("2 tensors of 2.00 KiB by gather"));
}

TEST(Choice, SlowUplinksNeedSchedules) {
  const auto network =
      std::make_shared<JobNetwork>(JobNetwork{.topology = *topology::racks(2, 4, {10e9, 10e9, 10e-6})});
  plan::Plan plan = plan_of(8, 0);
  std::vector<plan::Tensor> tensors = {{"small", 1}, {"large", 16 << 20}};
  const Models models = *model(request_for(plan, network, 0, 0, true));
  choose(plan, tensors, models.candidates, models.fleet);
  EXPECT_EQ(tensors[0].schedule, std::nullopt);
  ASSERT_TRUE(tensors[1].schedule.has_value()) << "owners would send each byte across the uplink several times";
}

TEST(Choice, SummersStayUnlessASchedulesGainIsLarge) {
  plan::Plan plan = plan_of(2, 0);  // two workers exchange halves in any case
  std::vector<plan::Tensor> tensors = {{"large", 64 << 20}};
  chosen(plan, tensors);
  EXPECT_EQ(tensors[0].schedule, std::nullopt);
  EXPECT_THAT(plan.schedules, IsEmpty());
}

TEST(Choice, AccumulatedTensorsHaveNoSchedule) {
  plan::Plan plan = plan_of(2, 0);
  std::vector<plan::Tensor> tensors = {{"a", 256, DataType::kFloat32, 0, 0, true}};
  chosen(plan, tensors);
  EXPECT_EQ(tensors[0].schedule, std::nullopt);
}

TEST(Choice, OneWorkerNeedsNoSchedule) {
  plan::Plan plan = plan_of(1, 1);
  std::vector<plan::Tensor> tensors = {{"a", 64 << 10}};
  chosen(plan, tensors);
  EXPECT_EQ(tensors[0].schedule, std::nullopt);
}

}  // namespace
}  // namespace gleaner::strategy
