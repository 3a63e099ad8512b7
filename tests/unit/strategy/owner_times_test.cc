// Tests that the modelled time of summers is that of the planner's plan, as the simulation of that plan has it.
#include "common/strategy/owner_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

#include "common/netsim/plan_run.h"
#include "common/plan/partitioner.h"
#include "common/plan/uplinks.h"
#include "common/strategy/candidates.h"
#include "common/topology/builders.h"
#include "tests/unit/strategy/links.h"

namespace gleaner::strategy {
namespace {

constexpr int kFleets = 200;

// A job on one switch, each of whose members has the bandwidth of its link.
struct StarJob {
  plan::Fleet fleet;
  double latency_seconds = kLatency;
  double overhead_seconds = 0;

  topology::Network network() const {
    const uint32_t members = fleet.n() + fleet.k();
    std::vector<topology::Host> hosts;
    std::vector<topology::Link> links;
    for (uint32_t i = 0; i < members; ++i) {
      hosts.push_back({"host-" + std::to_string(i), {}, overhead_seconds});
      links.push_back({i, members, fleet.bits_per_second(i), fleet.bits_per_second(i), latency_seconds});
    }
    return make_network(*topology::Topology::make(std::move(hosts), {{"switch"}}, std::move(links)));
  }
};

StarJob equal_job(uint32_t workers, uint32_t summers) {
  return {{std::vector<double>(workers, kBits), std::vector<double>(summers, kBits)}};
}

// Returns the time of the plan that the planner makes for a tensor alone.
double simulated(const plan::Fleet& fleet, const topology::Network& network, uint64_t bytes,
                 const plan::PartitionOptions& options = {}) {
  const auto plan = plan::make_plan(fleet, {{.name = "t", .elements = bytes / 4}}, options);
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::vector<uint32_t> hosts(plan->members.size());
  std::iota(hosts.begin(), hosts.end(), 0);
  const auto run = netsim::run_plan(*plan, network, hosts, {});
  EXPECT_TRUE(run.ok()) << run.status();
  return run->seconds;
}

double modelled(const plan::Fleet& fleet, const topology::Network& network, uint64_t bytes) {
  const auto all = candidates(network, fleet.n(), fleet.k());
  EXPECT_TRUE(all.ok()) << all.status();
  return seconds_of_new(*all, {.bytes = bytes, .by_default = plan::default_partition_bytes(fleet, bytes)}).front();
}

TEST(OwnerTimes, SmallTensorsAreSpreadOverOwners) {
  struct {
    uint32_t summers;
    uint64_t bytes;
    double seconds;
  } const cases[] = {{0, 64 << 10, 111.8e-6}, {0, 256 << 10, 387.0e-6}, {8, 64 << 10, 124.9e-6}};
  for (const auto& [summers, bytes, seconds] : cases) {
    const StarJob job = equal_job(8, summers);
    const topology::Network network = job.network();
    EXPECT_NEAR(simulated(job.fleet, network, bytes), seconds, 0.1e-6) << summers << " " << bytes;
    EXPECT_NEAR(modelled(job.fleet, network, bytes), seconds, 0.01 * seconds) << summers << " " << bytes;
  }
}

// Returns the ratio of the modelled to the simulated time for a random fleet and tensor, on hosts whose overhead is up
// to `most_overhead` seconds.
double ratio(std::mt19937_64& random, double most_overhead) {
  const auto log_uniform = [&](double least, double most) {
    return std::exp(std::uniform_real_distribution(std::log(least), std::log(most))(random));
  };
  const auto workers = static_cast<uint32_t>(2 + random() % 15),
             summers = static_cast<uint32_t>(random() % (workers + 1));
  StarJob job{{std::vector<double>(workers, log_uniform(1e9, 100e9)), {}}, log_uniform(1e-7, 50e-6)};
  job.fleet.summer_bits_per_second.assign(summers, job.fleet.worker_bits_per_second[0]);
  const double unequal = random() % 2 == 0 ? 1 : 2;
  for (auto* side : {&job.fleet.worker_bits_per_second, &job.fleet.summer_bits_per_second}) {
    for (double& bits_per_second : *side) bits_per_second *= log_uniform(1, unequal);
  }
  const uint64_t bytes = 4 * static_cast<uint64_t>(log_uniform(1, 16 << 20));
  if (most_overhead > 0) job.overhead_seconds = log_uniform(most_overhead / 100, most_overhead);
  const topology::Network network = job.network();
  return modelled(job.fleet, network, bytes) / simulated(job.fleet, network, bytes);
}

TEST(OwnerTimes, AgreesWithTheSimulation) {
  constexpr uint64_t kSeed = 1;
  std::mt19937_64 random(kSeed);
  std::vector<double> errors;
  for (int fleet = 0; fleet < kFleets; ++fleet) {
    errors.push_back(std::abs(ratio(random, 0) - 1));
    EXPECT_LT(errors.back(), 0.2) << "seed " << kSeed << ", fleet " << fleet;
  }
  std::ranges::sort(errors);
  EXPECT_LT(errors[kFleets / 2], 1e-3);
  EXPECT_LT(errors[kFleets * 9 / 10], 0.03);
}

TEST(OwnerTimes, IsNearTheSimulationWithOverheads) {
  constexpr uint64_t kSeed = 1;
  std::mt19937_64 random(kSeed);
  std::vector<double> ratios;
  constexpr int kSome = 50;
  for (int fleet = 0; fleet < kSome; ++fleet) ratios.push_back(ratio(random, 20e-6));
  std::ranges::sort(ratios);
  EXPECT_GT(ratios.front(), 0.65);
  EXPECT_GT(ratios[kSome / 10], 0.85);
  EXPECT_NEAR(ratios[kSome / 2], 1, 0.02);
  EXPECT_LT(ratios[kSome * 9 / 10], 1.2);
  EXPECT_LT(ratios.back(), 1.5);
}

// Partitions in force stay as they are: a tensor of one partition has one owner, whose link carries all contributions.
TEST(OwnerTimes, PartitionsInForceAreNotSpread) {
  const auto all = *candidates(equal_job(8, 0).network(), 8, 0);
  const double bytes = 64 << 10, byte = 8 / kBits;
  EXPECT_NEAR(all[0].model.seconds(bytes, bytes), 4 * kLatency + 14 * bytes * byte, 1e-9);
  EXPECT_NEAR(all[0].model.seconds(bytes, bytes / 8), 4 * kLatency + 1.75 * bytes * byte, 1e-9);
}

TEST(OwnerTimes, CountsUplinks) {
  const auto network = make_network(*topology::racks(2, 4, {kBits, kBits, kLatency}));
  const auto bound = *plan::bound_with_uplinks(network.topology, 8, 0, 1);
  const plan::Fleet fleet = *plan::fleet_of(network.topology, 8, 0);
  for (const uint64_t bytes : {uint64_t{4}, uint64_t{64} << 10, uint64_t{1} << 20, uint64_t{16} << 20}) {
    const double seconds = simulated(fleet, network, bytes, {.shares = bound.shares});
    EXPECT_NEAR(modelled(fleet, network, bytes), seconds, 0.1 * seconds) << bytes;
  }
}

TEST(OwnerTimes, CountsRoutes) {
  const auto network = make_network(*topology::fat_tree(4, {kBits, kBits, kLatency}));
  const auto bound = *plan::bound_with_uplinks(network.topology, 16, 0, 1);
  const plan::Fleet fleet = *plan::fleet_of(network.topology, 16, 0);
  for (const uint64_t bytes : {uint64_t{4}, uint64_t{64} << 10, uint64_t{1} << 20, uint64_t{16} << 20}) {
    const double seconds = simulated(fleet, network, bytes, {.shares = bound.shares});
    EXPECT_NEAR(modelled(fleet, network, bytes), seconds, 0.1 * seconds) << bytes;
  }
}

TEST(OwnerTimes, OneWorkerSendsNothing) {
  EXPECT_EQ(OwnerTimes::make(equal_job(1, 1).network().topology, 1, 1, 1)->seconds(1e6, 1e4, 1e3), 0);
}

}  // namespace
}  // namespace gleaner::strategy
