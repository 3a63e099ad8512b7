#include "common/strategy/schedule_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "common/collective/algorithms.h"
#include "common/netsim/schedule_run.h"
#include "common/plan/partitioner.h"
#include "common/strategy/candidates.h"
#include "common/topology/builders.h"
#include "common/wire/frame.h"

namespace gleaner::strategy {
namespace {

constexpr double kMost = 4 << 20;
constexpr uint32_t kWorkers = 8;

// Returns the time of all partitions of a tensor, simulated at once.
double simulated(const collective::Spec& spec, const topology::Network& network, double link, double bytes,
                 double partition_bytes) {
  std::vector<uint32_t> host_of(kWorkers);
  std::iota(host_of.begin(), host_of.end(), 0);
  const auto count = static_cast<size_t>(std::ceil(bytes / partition_bytes));
  const double round_trip = 2 * farthest_latency(network, kWorkers, kWorkers);
  const auto limits = plan::schedule_limits(bytes / static_cast<double>(count), link, wire::kHeaderBytes, round_trip);
  const netsim::Partitions partitions{.bytes = std::vector<double>(count, bytes / static_cast<double>(count)),
                                      .limits = {kWorkers, {limits.in_flight, limits.peer_window}},
                                      .frame_bytes = wire::kHeaderBytes};
  const auto run = netsim::run_schedule(*collective::make_schedule(spec, kWorkers), network, host_of, partitions, {});
  EXPECT_TRUE(run.ok()) << run.status();
  return run->seconds;
}

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  double between(double least, double most) {  // logarithms are uniform
    return least * std::pow(most / least, static_cast<double>(random_() >> 11) * 0x1p-53);
  }

 private:
  std::mt19937_64 random_;
};

// Sizes and numbers of partitions lie between those that the model simulates.
TEST(ScheduleTimes, ModelsAreWhatRuns) {
  Random random(1);
  for (const char* algorithm :
       {"gather", "ring", "halving-doubling", "double-tree", "blueconnect", "racks", "two-level"}) {
    std::vector<double> errors;
    for (int i = 0; i < 40; ++i) {
      const double link = random.between(1e9, 100e9);
      const topology::LinkSpeed speed{link, link * random.between(0.5, 4), random.between(1e-6, 50e-6)};
      const topology::Network network = make_network(*topology::racks(2, 4, speed));
      collective::Spec spec{.algorithm = algorithm};
      if (spec.algorithm == "racks") spec.factors = {2, 4};
      const auto candidate = candidate_of(network, kWorkers, spec);
      ASSERT_TRUE(candidate.ok()) << candidate.status();
      const double partition = random.between(4096, kMost), bytes = partition * random.between(0.01, 60);
      const double ratio =
          candidate->model.seconds(bytes, partition) / simulated(spec, network, link, bytes, partition);
      errors.push_back(std::abs(ratio - 1));
    }
    std::ranges::sort(errors);
    EXPECT_LT(errors[errors.size() * 9 / 10], 0.03) << algorithm;
    EXPECT_LT(errors.back(), 0.15) << algorithm;
  }
}

}  // namespace
}  // namespace gleaner::strategy
