// Tests whole jobs on a simulated network, each from a seed. To repeat a seed that fails:
// executor_seeds_test --gtest_filter=Seeds/ExecutorSeeds.*/SEED
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "common/collective/algorithms.h"
#include "tests/unit/executor/simulated_job.h"

namespace gleaner::testing {
namespace {

constexpr std::array kWorkers = {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 16u};
constexpr std::array kTypes = {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16, DataType::kBFloat16,
                               DataType::kInt32};

class Generator {
 public:
  explicit Generator(uint64_t seed) : seed_(seed), random_(seed ^ 0x5eed) {}

  JobSpec spec() {
    JobSpec job;
    ScheduledPlan& plan = job.plan;
    const std::span<const absl::string_view> algorithms = collective::algorithms();
    plan.workers = kWorkers[seed_ / algorithms.size() % kWorkers.size()];
    plan.local_ranks = dice(3) == 0 ? 2 + dice(3) : 1;
    plan.schedules = {schedule(algorithms[seed_ % algorithms.size()], plan.workers)};
    plan.schedules.push_back(plan.schedules[0]);
    plan.schedules.push_back(schedule("ring", plan.workers));
    plan.tensors.clear();
    for (uint32_t i = 0, tensors = 1 + dice(5); i < tensors; ++i) plan.tensors.push_back(tensor(plan.workers));
    job.steps = 1 + dice(4);
    job.window_bytes = std::array<uint64_t, 4>{0, 64, 1'000, 20'000}[dice(4)];
    job.breaks = dice(2) == 0;
    return job;
  }

 private:
  uint32_t dice(uint64_t sides) { return static_cast<uint32_t>(random_() % sides); }

  // Returns factors of `workers` whose product is `workers`; `count` of them, or any number for 0.
  std::vector<uint32_t> factors(uint32_t workers, uint32_t count) {
    std::vector<uint32_t> stages;
    while (count == 0 ? workers > 1 : stages.size() + 1 < count) {
      uint32_t factor = 1 + dice(workers);
      while (workers % factor != 0 || (count == 0 && factor == 1)) factor = factor % workers + 1;
      stages.push_back(factor);
      workers /= factor;
    }
    if (count > 0) stages.push_back(workers);
    return stages;
  }

  collective::Spec schedule(absl::string_view algorithm, uint32_t workers) {
    collective::Spec spec{.algorithm = std::string(algorithm)};
    const bool grouped = algorithm == "racks" || algorithm == "two-level";
    if (grouped && dice(2) == 0) {
      spec.factors = factors(workers, 2);
    } else if (grouped) {
      add_groups(workers, spec);
    }
    if (algorithm == "blueconnect" && dice(2) == 0) spec.factors = factors(workers, 0);
    if (algorithm == "bcube" && workers > 1 && dice(2) == 0) spec.radix = workers;
    if (dice(4) > 0) {
      spec.rank_of.resize(workers);
      std::iota(spec.rank_of.begin(), spec.rank_of.end(), 0);
      std::shuffle(spec.rank_of.begin(), spec.rank_of.end(), random_);
    }
    return spec;
  }

  // Adds groups of random sizes and, for two-level, random numbers of chunks that each rank masters.
  void add_groups(uint32_t workers, collective::Spec& spec) {
    for (uint32_t left = workers; left > 0; left -= spec.group_sizes.back()) {
      spec.group_sizes.push_back(1 + dice(left));
    }
    if (spec.algorithm != "two-level" || dice(2) == 0) return;
    const uint32_t chunks = 1 + dice(3 * workers);
    spec.masters.global.resize(workers);
    for (uint32_t chunk = 0; chunk < chunks; ++chunk) ++spec.masters.global[dice(workers)];
    spec.masters.local = spec.masters.global;
    for (uint32_t first = 0; const uint32_t size : spec.group_sizes) {
      uint32_t own = 0;
      for (uint32_t rank = first; rank < first + size; ++rank) own += spec.masters.global[rank];
      for (uint32_t chunk = own; chunk < chunks; ++chunk) ++spec.masters.local[first + dice(size)];
      first += size;
    }
  }

  ScheduledTensor tensor(uint32_t workers) {
    const std::array<uint64_t, 7> elements = {0, 1, workers - 1, workers, 37, 64, 1'001};
    return {.elements = elements[dice(elements.size())],
            .partitions = 1 + dice(4),
            .type = kTypes[dice(kTypes.size())],
            .priority = static_cast<int32_t>(dice(3)),
            .schedule = dice(3)};
  }

  const uint64_t seed_;
  std::mt19937_64 random_;
};

class ExecutorSeeds : public ::testing::TestWithParam<int> {};

// The seeds take each algorithm with each number of workers twice.
TEST_P(ExecutorSeeds, EqualTheOracle) {
  const auto seed = static_cast<uint64_t>(GetParam());
  SimulatedJob job(Generator(seed).spec(), seed);
  EXPECT_EQ(job.run(), "") << "seed " << seed;
}
INSTANTIATE_TEST_SUITE_P(Seeds, ExecutorSeeds, ::testing::Range(0, 160));

// Without repeats, the seeds would not test that slices arrive exactly once.
TEST(ExecutorSeedsCover, Repeats) {
  JobSpec spec{.plan = {.workers = 4, .tensors = {{.elements = 64, .partitions = 4}}}, .steps = 5, .breaks = true};
  uint64_t repeats = 0;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    SimulatedJob job(spec, seed);
    EXPECT_EQ(job.run(), "") << "seed " << seed;
    repeats += job.repeats();
  }
  EXPECT_GT(repeats, 0u);
}

}  // namespace
}  // namespace gleaner::testing
