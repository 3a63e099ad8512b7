// Measures the time to make a plan, and the size of the plan message that members get.
// Run: build/release/tests/plan_benchmark
#include <benchmark/benchmark.h>

#include <random>

#include "common/plan/partitioner.h"
#include "common/proto/plan_codec.h"
#include "tests/unit/plan/fleets.h"

namespace gleaner::plan {
namespace {

// Returns `count` tensors of `total` bytes together. Their sizes span four decades, as in real models.
std::vector<Tensor> tensors(size_t count, double total) {
  std::mt19937_64 random(1);
  std::vector<double> size(count);
  double sum = 0;
  for (double& bytes : size) {
    bytes = std::exp(std::uniform_real_distribution(0., 9.)(random));
    sum += bytes;
  }
  std::vector<Tensor> result(count);
  for (size_t i = 0; i < count; ++i) {
    result[i].name = "layer." + std::to_string(i) + ".weight";
    result[i].elements = static_cast<uint64_t>(size[i] / sum * total / 4);
  }
  return result;
}

// Arguments: workers, summers, tensors, total MiB, Gbit/s.
void make(benchmark::State& state) {
  const Fleet fleet = even_fleet(static_cast<uint32_t>(state.range(0)), static_cast<uint32_t>(state.range(1)),
                                 static_cast<double>(state.range(4)) * 1e9);
  const auto list = tensors(static_cast<size_t>(state.range(2)), static_cast<double>(state.range(3)) * (1 << 20));
  size_t partitions = 0, bytes = 0;
  for (auto _ : state) {
    auto copy = list;
    const auto plan = make_plan(fleet, std::move(copy), {});
    if (!plan.ok()) {
      state.SkipWithError(std::string(plan.status().message()).c_str());
      return;
    }
    state.PauseTiming();
    partitions = plan->partitions.size();
    v1::Plan message;
    proto::encode(*plan, &message);
    bytes = message.ByteSizeLong();
    state.ResumeTiming();
  }
  state.counters["partitions"] = static_cast<double>(partitions);
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK(make)
    ->Unit(benchmark::kMillisecond)
    ->ArgNames({"workers", "summers", "tensors", "MiB", "Gbit"})
    ->Args({8, 4, 161, 97, 25})
    ->Args({32, 16, 391, 1278, 25})
    ->Args({1024, 512, 10'000, 1'000, 25})
    ->Args({1024, 512, 10'000, 10'000, 25})
    ->Args({1024, 512, 10'000, 10'000, 100})
    ->Args({1024, 512, 10'000, 100'000, 100})
    ->Args({64, 32, 100'000, 10'000, 25});

// The series that bench/growth measures. In each series one argument grows and the others are constant.
BENCHMARK(make)
    ->Name("workers")
    ->Unit(benchmark::kMillisecond)
    ->ArgNames({"workers", "summers", "tensors", "MiB", "Gbit"})
    ->ArgsProduct({{8, 16, 32, 64, 128, 256, 512, 1024}, {32}, {400}, {1'000}, {25}});
BENCHMARK(make)
    ->Name("tensors")
    ->Unit(benchmark::kMillisecond)
    ->ArgNames({"workers", "summers", "tensors", "MiB", "Gbit"})
    ->ArgsProduct({{32}, {32}, {10, 100, 1'000, 10'000, 100'000}, {1'000}, {25}});

}  // namespace
}  // namespace gleaner::plan

BENCHMARK_MAIN();
