// Measures sums of partition sizes, and L1 norms of chunks. Select some with, for example,
// --benchmark_filter=avx512/fp32. `gleaner bench sum` compares sums with memcpy. Norms are compared with it here:
// memcpy reads and writes as many bytes of another array after each measurement of norms.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "common/kernels/kernels.h"

namespace gleaner::kernels {
namespace {

void sum(benchmark::State& state, const Kernels& kernels, DataType type) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto count = static_cast<size_t>(state.range(1));
  std::vector<std::vector<std::byte>> sources(count, std::vector<std::byte>(bytes));
  std::vector<const std::byte*> pointers;
  for (const auto& source : sources) pointers.push_back(source.data());
  std::vector<std::byte> result(bytes);
  for (auto _ : state) {
    kernels.sum(type, pointers, result.data(), bytes / size_of(type), 1);
    benchmark::DoNotOptimize(result.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>((count + 1) * bytes));
}

// Returns the processor time of this thread that `work` takes, in seconds.
double seconds_of(const auto& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double begin = now();
  work();
  return now() - begin;
}

void l1_norms(benchmark::State& state, const Kernels& kernels, DataType type) {
  constexpr size_t kColumns = 32'000;  // of a chunk of sparse communication
  const auto bytes = static_cast<size_t>(state.range(0));
  const size_t rows = bytes / kColumns / size_of(type);
  std::vector<std::byte> values(bytes, std::byte{1}), copy(bytes);
  std::vector<float> norms(rows);
  double seconds = 0;
  double copy_seconds = 0;
  for (auto _ : state) {
    const double one = seconds_of([&] { kernels.l1_norms(type, values.data(), rows, kColumns, norms.data()); });
    copy_seconds += seconds_of([&] {
      std::memcpy(copy.data(), values.data(), bytes);
      benchmark::DoNotOptimize(copy.data());
    });
    seconds += one;
    state.SetIterationTime(one);
  }
  const size_t read = rows * kColumns * size_of(type);
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(read));
  // memcpy's rate counts the bytes read and written.
  state.counters["of_memcpy"] = static_cast<double>(read) / seconds / (2 * static_cast<double>(bytes) / copy_seconds);
}

}  // namespace
}  // namespace gleaner::kernels

int main(int argc, char** argv) {
  using gleaner::DataType;
  for (const auto variant : gleaner::kernels::available_variants()) {
    const auto kernels = gleaner::kernels::Kernels::choose(variant);
    for (DataType type :
         {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16, DataType::kBFloat16, DataType::kInt32}) {
      const std::string name = std::string(variant) + "/" + std::string(name_of(type));
      benchmark::RegisterBenchmark(name.c_str(), gleaner::kernels::sum, *kernels, type)
          ->ArgNames({"bytes", "sources"})
          ->ArgsProduct({{4096, 1 << 16, 1 << 20, 4 << 20}, {2, 8, 64}});
      if (type == DataType::kInt32) continue;
      benchmark::RegisterBenchmark((name + "/l1_norms").c_str(), gleaner::kernels::l1_norms, *kernels, type)
          ->ArgName("bytes")
          ->Arg(8'192'000)
          ->Arg(65'536'000)
          ->UseManualTime();
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
