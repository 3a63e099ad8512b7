// Measures sums of partition sizes. Select some with, for example, --benchmark_filter=avx512/fp32. `gleaner bench sum`
// compares sums with memcpy.
#include <benchmark/benchmark.h>

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
    }
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
