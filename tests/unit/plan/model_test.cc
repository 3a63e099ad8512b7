// Compares the bandwidth model with the figures of the BytePS paper and with properties of every optimum.
#include "common/plan/model.h"

#include <gmock/gmock.h>

#include <numeric>

#include "common/plan/plan.h"
#include "tests/unit/plan/fleets.h"

namespace gleaner::plan {
namespace {

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

// Returns the step time of these shares, computed without the model's code: worker i sends the pushes of what others
// own and n-1 results of what it owns, and receives results and pushes; summer j receives n pushes and sends n results.
double seconds_of(const Fleet& fleet, const std::vector<double>& share, double bytes) {
  const double n = fleet.n(), r = fleet.push_ratio;
  double slowest = 0;
  for (uint32_t i = 0; i < fleet.n(); ++i) {
    const double sent = r * (1 - share[i]) + (n - 1) * share[i];
    const double received = 1 - share[i] + (n - 1) * r * share[i];
    slowest = std::max(slowest, std::max(sent, received) * bytes * 8 / fleet.worker_bits_per_second[i]);
  }
  for (uint32_t j = 0; j < fleet.k(); ++j) {
    slowest =
        std::max(slowest, n * std::max(r, 1.0) * share[fleet.n() + j] * bytes * 8 / fleet.summer_bits_per_second[j]);
  }
  return slowest;
}

// Returns a random fleet; half of them have pushes that are larger than results.
Fleet random_fleet_of_any_ratio(std::mt19937_64& random, uint32_t most_workers = 40) {
  Fleet fleet = random_fleet(random, most_workers);
  const double larger = random() % 2 == 0 ? kMaxPushRatio : std::uniform_real_distribution(1.0, 2.0)(random);
  if (random() % 2 == 0) fleet.push_ratio = random() % 2 == 0 ? larger : 1 / larger;
  return fleet;
}

// Returns the bound by equation 6 of the paper; M/B if k > n.
double equal_bound(double n, double k, double bytes, double bits_per_second) {
  if (k > n) k = n;
  return 2 * n * (n - 1) * bytes / ((n * n + k * n - 2 * k) * bits_per_second / 8);
}

TEST(Model, Equation6) {
  for (uint32_t n : {2, 3, 4, 8, 32, 1000}) {
    for (uint32_t k : {0u, 1u, n / 2, n - 1, n, n + 1, 3 * n}) {
      EXPECT_NEAR(bound_seconds(even_fleet(n, k, 10 * kGbit), 1e9) / equal_bound(n, k, 1e9, 10 * kGbit), 1, 1e-12)
          << "n=" << n << " k=" << k;
    }
  }
}

TEST(Model, Equations1And2) {
  for (double n : {2., 3., 8., 32.}) {
    for (double k = 1; k <= n; ++k) {
      const auto share = shares(even_fleet(static_cast<uint32_t>(n), static_cast<uint32_t>(k), kGbit));
      const double slots = n * n + k * n - 2 * k;  // the range of the paper's hash function
      EXPECT_NEAR(share.front(), (n - k) / slots, 1e-12) << "n=" << n << " k=" << k;
      EXPECT_NEAR(share.back(), 2 * (n - 1) / slots, 1e-12) << "n=" << n << " k=" << k;
    }
  }
}

TEST(Model, Table1) {
  const double bytes = 1e9, bandwidth = 8 * kGbit;  // M/B = 1 s
  for (uint32_t n : {2u, 3u, 8u, 100u}) {
    EXPECT_NEAR(bound_seconds(even_fleet(n, 0, bandwidth), bytes), 2.0 * (n - 1) / n, 1e-12);  // all-reduce
    EXPECT_NEAR(bound_seconds(even_fleet(n, n, bandwidth), bytes), 1, 1e-12);                  // full parameter server
    EXPECT_NEAR(bound_seconds(even_fleet(n, 2 * n, bandwidth), bytes), 1, 1e-12);
  }
}

TEST(Model, Equation7) {
  const double bytes = 1e9, bandwidth = 8 * kGbit;
  const auto all_reduce_over_optimum = [&](uint32_t n, uint32_t k) {
    return bound_seconds(even_fleet(n, 0, bandwidth), bytes) / bound_seconds(even_fleet(n, k, bandwidth), bytes);
  };
  EXPECT_NEAR(all_reduce_over_optimum(32, 16), 1504. / 1024, 1e-12);
  const double parameter_server = 32. / 16;  // nM/(kB)
  EXPECT_NEAR(parameter_server / bound_seconds(even_fleet(32, 16, bandwidth), bytes), 1504. / 992, 1e-12);
  EXPECT_NEAR(all_reduce_over_optimum(4096, 4096), 2, 1e-3);
}

TEST(Model, Figure12) {
  const double goodput[] = {51.43, 56.25, 61.07, 65.89, 70.71, 75.54, 80.36, 85.18, 90.00};
  for (uint32_t k = 0; k <= 8; ++k) {
    EXPECT_NEAR(8 / bound_seconds(even_fleet(8, k, 90), 1), goodput[k], 0.005) << "k=" << k;
  }
}

// Footnote 4 of the paper: CPU machines with a quarter of the bandwidth.
TEST(Model, SummersCountOnlyByTheirSum) {
  Fleet quarters = even_fleet(8, 0, 25 * kGbit);
  quarters.summer_bits_per_second.assign(16, 25 * kGbit / 4);
  EXPECT_NEAR(bound_seconds(quarters, 1e9) / bound_seconds(even_fleet(8, 4, 25 * kGbit), 1e9), 1, 1e-12);
  Fleet uneven = even_fleet(8, 0, 25 * kGbit);
  uneven.summer_bits_per_second = {1 * kGbit, 99 * kGbit};
  EXPECT_NEAR(bound_seconds(uneven, 1e9) / bound_seconds(even_fleet(8, 4, 25 * kGbit), 1e9), 1, 1e-12);
}

TEST(Model, OneWorkerMovesNothing) {
  const Fleet fleet = even_fleet(1, 3, kGbit);
  EXPECT_EQ(bound_seconds(fleet, 1e9), 0);
  EXPECT_THAT(shares(fleet), testing::ElementsAre(1, 0, 0, 0));
  EXPECT_EQ(step_seconds(fleet, {1000, 0, 0, 0}), 0);
}

TEST(Model, TwoWorkersAreBoundByTheSlowerOneForAnySummers) {
  for (uint32_t k : {0, 1, 2, 7}) {
    Fleet fleet = even_fleet(2, k, 5 * kGbit);
    fleet.worker_bits_per_second = {2 * kGbit, 4 * kGbit};
    EXPECT_DOUBLE_EQ(bound_seconds(fleet, 1e9), 4);
    EXPECT_NEAR(seconds_of(fleet, shares(fleet), 1e9), 4, 1e-9);
  }
}

TEST(Model, FullParameterServerLeavesNothingAtTheWorkers) {
  for (uint32_t n : {3, 7, 10, 33, 1000}) {
    for (uint32_t k : {n, n + 1}) {
      const auto share = shares(even_fleet(n, k, 25 * kGbit / 3));
      for (uint32_t i = 0; i < n; ++i) EXPECT_EQ(share[i], 0) << "n=" << n << " k=" << k;
    }
  }
}

TEST(Model, SharesReachTheBoundOnRandomFleets) {
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Fleet fleet = random_fleet_of_any_ratio(random);
    const auto share = shares(fleet);
    ASSERT_EQ(share.size(), fleet.n() + fleet.k());
    for (double part : share) ASSERT_TRUE(part == 0 || part >= 0.99e-9) << part;
    ASSERT_NEAR(sum(share), 1, 1e-12);
    const double bound = bound_seconds(fleet, 1e9);
    ASSERT_LE(seconds_of(fleet, share, 1e9), bound * (1 + 1e-6));
  }
}

// No split is better than the bound: neither a random one, nor a small change of the best one.
TEST(Model, NothingBeatsTheBound) {
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937_64 random(seed);
    const Fleet fleet = random_fleet_of_any_ratio(random, 6);
    const double bound = bound_seconds(fleet, 1e9);
    const auto best = shares(fleet);
    for (double change : {1e-3, 0.1, 1., 10.}) {
      std::vector<double> other = best;
      for (double& part : other) part += change * std::uniform_real_distribution(0., 1.)(random);
      const double total = sum(other);
      for (double& part : other) part /= total;
      ASSERT_GE(seconds_of(fleet, other, 1e9), bound * (1 - 1e-9));
    }
  }
}

// If the slowest worker limits the step, all other owners use the same fraction of what their links allow.
TEST(Model, SlackIsSpreadInProportion) {
  Fleet fleet = even_fleet(8, 12, 10 * kGbit);
  fleet.worker_bits_per_second[3] = 5 * kGbit;
  fleet.summer_bits_per_second[0] = 40 * kGbit;
  const double bound = bound_seconds(fleet, 1e9);
  EXPECT_NEAR(bound, 8e9 / 5e9, 1e-9);
  const auto share = shares(fleet);
  EXPECT_EQ(share[3], 0);
  const double full = (bound * 10 * kGbit / 8 - 1e9) / 6;  // bytes that a worker with 10 Gbit/s owns if always busy
  const double used = share[0] * 1e9 / full;
  EXPECT_LT(used, 0.9);
  EXPECT_NEAR(share[8] * 1e9 / (bound * 40 * kGbit / 8 / 8), used, 1e-9);
  EXPECT_NEAR(share[9] * 1e9 / (bound * 10 * kGbit / 8 / 8), used, 1e-9);
}

// The figures that docs/model.md derives for pushes twice as large as results.
TEST(Model, LargerPushes) {
  const double bytes = 1e9, bandwidth = 8 * kGbit;  // M/B = 1 s
  const auto bound = [&](uint32_t n, uint32_t k) {
    Fleet fleet = even_fleet(n, k, bandwidth);
    fleet.push_ratio = 2;
    return bound_seconds(fleet, bytes);
  };
  for (uint32_t n : {2u, 3u, 8u, 100u}) EXPECT_NEAR(bound(n, 0), 3.0 * (n - 1) / n, 1e-12) << n;
  EXPECT_NEAR(bound(2, 5), 1.5, 1e-12) << "each of two workers owns a half";
  EXPECT_NEAR(bound(8, 16), 2, 1e-12) << "each worker pushes all of its gradient";
  EXPECT_NEAR(bound(8, 1), 4.2 / 1.6625, 1e-12) << "8·(T - 2)/5 + T/16 = 1";
  Fleet fleet = even_fleet(8, 4, bandwidth);
  EXPECT_EQ(slowest_worker_seconds(fleet, bytes), 1);
  fleet.push_ratio = 2;
  EXPECT_EQ(slowest_worker_seconds(fleet, bytes), 2);
}

// Half of the bytes one way take what twice the bytes the other way take, for half of them.
TEST(Model, SmallerPushes) {
  for (const uint32_t summers : {0u, 1u, 4u, 16u}) {
    Fleet smaller = even_fleet(8, summers, kGbit), larger = smaller;
    smaller.push_ratio = 0.5;
    larger.push_ratio = 2;
    EXPECT_DOUBLE_EQ(bound_seconds(smaller, 1e9), bound_seconds(larger, 1e9) / 2);
    EXPECT_DOUBLE_EQ(slowest_worker_seconds(smaller, 1e9), slowest_worker_seconds(larger, 1e9) / 2);
  }
}

TEST(Model, TrafficOfAConcreteOwnership) {
  const Fleet fleet{{8e9, 16e9, 8e9}, {4e9}};
  const std::vector<uint64_t> owned = {100, 200, 0, 700};
  EXPECT_THAT(traffic_bytes(fleet, owned), testing::ElementsAre(1100, 1200, 1000, 2100));
  EXPECT_DOUBLE_EQ(step_seconds(fleet, owned), 2100 / 0.5e9);
  Fleet larger = fleet;
  larger.push_ratio = 2;
  // Worker 0 sends 2·900 + 2·100 bytes, worker 1 sends 2·800 + 2·200, and summer 0 receives 3·2·700.
  EXPECT_THAT(traffic_bytes(larger, owned), testing::ElementsAre(2000, 2000, 2000, 4200));
}

TEST(Model, RejectsInvalidFleets) {
  EXPECT_TRUE(validate(even_fleet(1, 0, 1)).ok());
  EXPECT_TRUE(validate(even_fleet(kMaxMembers - 1, 1, 1e18)).ok());
  const auto message = [](const Fleet& fleet) { return std::string(validate(fleet).message()); };
  EXPECT_THAT(message({}), testing::HasSubstr("at least one worker"));
  EXPECT_THAT(message(even_fleet(kMaxMembers, 1, 1)), testing::HasSubstr("at most 65536"));
  for (double bad : {0., -1., 1e19, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THAT(message({{1e9, bad}, {}}), testing::HasSubstr("worker/1"));
    EXPECT_THAT(message({{1e9}, {1e9, 1e9, bad}}), testing::HasSubstr("summer/2"));
  }
  for (double bad : {0.12, 8.01, std::nan("")}) {
    EXPECT_THAT(message({{1e9}, {}, bad}), testing::HasSubstr("bytes for each byte of the result"));
  }
}

}  // namespace
}  // namespace gleaner::plan
