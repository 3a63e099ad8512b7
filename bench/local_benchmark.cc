// Compares the time to sum a tensor over the local ranks of one machine with the time to copy it once by memcpy.
//
// Each rank is a thread that polls its Group, like the I/O thread of a process. The leader publishes each sum at once,
// so no network takes part. One iteration is one push_pull, from start() to on_done() on all ranks.
#include <benchmark/benchmark.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "comm-lib/local/group.h"
#include "common/base/env.h"

namespace gleaner {
namespace {

class Rank : private local::Events {
 public:
  Rank(const Env& env, const kernels::Kernels* kernels, uint32_t rank, uint32_t size, size_t elements)
      : input_(elements, 1.0f), output_(elements) {
    local::Options options;
    options.job = static_cast<uint64_t>(getpid());
    options.local_rank = rank;
    options.local_size = size;
    group_ = *local::Group::create(env, options, kernels, this);
    const local::TensorShape shape{elements, DataType::kFloat32};
    if (!group_->register_tensors(std::span(&shape, 1)).ok()) std::abort();
  }

  void push_pull() {
    done_ = false;
    const auto input = std::as_bytes(std::span(input_));
    if (!group_->start(0, ReduceOp::kSum, input, std::as_writable_bytes(std::span(output_))).ok()) std::abort();
    while (!done_) {
      pollfd descriptor{group_->descriptor(), POLLIN, 0};
      if (!group_->has_work()) ::poll(&descriptor, 1, -1);
      group_->poll();
    }
  }

  // Makes the next push_pull the last one. All ranks recognize the last one by its result.
  void announce_last() { input_[0] = 0.0f; }
  bool was_last(uint32_t ranks) const { return output_[0] != static_cast<float>(ranks); }

 private:
  void on_connected() override {}
  void on_reduced(uint32_t tensor, ReduceOp, MutableBytes, MutableBytes) override {
    group_->publish(tensor, absl::OkStatus());
  }
  void on_done(uint32_t, const absl::Status&) override { done_ = true; }
  void on_failed(const absl::Status&) override { std::abort(); }

  std::vector<float> input_;
  std::vector<float> output_;
  std::unique_ptr<local::Group> group_;
  bool done_ = false;
};

void local_push_pull(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const auto size = static_cast<uint32_t>(state.range(1));
  SystemEnv env({"bench", LogLevel::kWarning});
  const kernels::Kernels kernels = *kernels::Kernels::choose("");
  std::vector<std::unique_ptr<Rank>> ranks;
  for (uint32_t i = 0; i < size; ++i) ranks.push_back(std::make_unique<Rank>(env.env(), &kernels, i, size, bytes / 4));
  std::vector<std::thread> others;
  for (uint32_t i = 1; i < size; ++i) {
    others.emplace_back([size, rank = ranks[i].get()] {
      do {
        rank->push_pull();
      } while (!rank->was_last(size));
    });
  }
  ranks[0]->push_pull();  // warm-up: touches all memory once
  for (auto _ : state) ranks[0]->push_pull();
  ranks[0]->announce_last();
  ranks[0]->push_pull();
  for (std::thread& other : others) other.join();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(local_push_pull)
    ->ArgNames({"bytes", "ranks"})
    ->Args({4 << 10, 2})
    ->Args({1 << 20, 2})
    ->Args({64 << 20, 2})
    ->Args({64 << 20, 4})
    ->UseRealTime();

void copy(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  std::vector<std::byte> from(bytes, std::byte{1});
  std::vector<std::byte> to(bytes);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}
BENCHMARK(copy)->ArgNames({"bytes"})->Arg(1 << 20)->Arg(64 << 20)->UseRealTime();

}  // namespace
}  // namespace gleaner

BENCHMARK_MAIN();
