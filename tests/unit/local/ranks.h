// Ranks: the local ranks of a worker in one thread, which polls them in turn. A Group never blocks, so one thread
// suffices.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "comm-lib/local/group.h"
#include "common/base/accumulator.h"
#include "common/base/env.h"

namespace gleaner::testing {

inline const Env& test_env() {
  static SystemEnv env({"local_test", LogLevel::kOff});
  return env.env();
}

inline const kernels::Kernels* test_kernels() {
  static const kernels::Kernels kernels = *kernels::Kernels::choose("");
  return &kernels;
}

// The double of the driver takes whatever begins as a fatbin does.
inline constexpr std::array kDoubleKernels = {std::byte{0x50}, std::byte{0xED}, std::byte{0x55}, std::byte{0xBA}};

inline local::Options options_of(uint32_t rank, uint32_t size) {
  local::Options options;
  options.job = 1;
  options.worker = 2;
  options.local_rank = rank;
  options.local_size = size;
  options.timeout = absl::Minutes(5);
  return options;
}

// Returns a random secret. The names of sockets depend on it, so tests in one network namespace do not collide.
inline std::array<uint8_t, 32> fresh_secret() {
  std::array<uint8_t, 32> secret;
  EXPECT_TRUE(test_env().random->fill(secret).ok());
  return secret;
}

// One local rank, which records its events.
struct TestRank : local::Events {
  explicit TestRank(const local::Options& options, const Env& env = test_env()) {
    auto made = local::Group::create(env, options, test_kernels(), this);
    EXPECT_TRUE(made.ok()) << made.status();
    if (made.ok()) group = *std::move(made);
  }

  void on_connected() override { connected = true; }
  void on_reduced(uint32_t tensor, ReduceOp op, MutableBytes sum, MutableBytes result) override {
    reduced.push_back(tensor);
    ops.push_back(op);
    results[tensor] = result;
    if (network) return network(tensor, sum);
    if (sum.data() != result.data()) {
      const DataType type = shapes.at(tensor).type;
      const std::byte* const source = sum.data();
      test_kernels()->sum(accumulator_of(type), type, std::span(&source, 1), result.data(),
                          result.size() / size_of(type), 1);
    }
    group->publish(tensor, absl::OkStatus());
  }
  void on_done(uint32_t tensor, const absl::Status& status) override {
    ++done_count;
    done[tensor] = status;
    if (after_done) after_done(tensor);
  }
  void on_failed(const absl::Status& status) override {
    EXPECT_FALSE(failed.has_value()) << "told twice";
    EXPECT_FALSE(status.ok());
    failed = status;
  }

  bool traces_gpu() const override { return traces; }
  void on_gpu(uint32_t, trace::Kind point) override { points.push_back(point); }

  // Does one round of the loop that a process's I/O thread runs: waits, and polls.
  void turn(int timeout_ms) {
    pollfd descriptor{group->descriptor(), POLLIN, 0};
    if (!group->has_work()) ::poll(&descriptor, 1, timeout_ms);
    group->poll();
  }

  std::unique_ptr<local::Group> group;
  bool connected = false;
  std::optional<absl::Status> failed;
  std::map<uint32_t, absl::Status> done;
  size_t done_count = 0;
  std::vector<uint32_t> reduced;
  std::vector<ReduceOp> ops;
  std::map<uint32_t, MutableBytes> results;             // by tensor: the memory for the network's result
  std::vector<local::TensorShape> shapes;               // of all registered tensors
  bool traces = false;                                  // a trace is on
  std::vector<trace::Kind> points;                      // of the GPU's work, while it is
  std::function<void(uint32_t, MutableBytes)> network;  // default: publishes the partial sum, rounded to the type
  std::function<void(uint32_t)> after_done;
};

class Ranks {
 public:
  // `gpu_bytes`: as in Options.
  explicit Ranks(uint32_t size, size_t gpu_bytes = 0) : secret_(fresh_secret()), gpu_bytes_(gpu_bytes) {
    for (uint32_t rank = 0; rank < size; ++rank) open(rank, size);
  }

  void open(uint32_t rank, uint32_t size) {
    local::Options options = options_of(rank, size);
    options.secret = secret_;
    options.gpu_bytes = gpu_bytes_;
    options.gpu_kernels = kDoubleKernels;
    ranks_.push_back(std::make_unique<TestRank>(options));
  }

  TestRank& operator[](size_t rank) { return *ranks_[rank]; }
  size_t size() const { return ranks_.size(); }
  void close(size_t rank) { ranks_[rank]->group.reset(); }

  void turn() {
    for (auto& rank : ranks_) {
      if (rank->group != nullptr) rank->turn(0);
    }
  }

  // Polls all ranks until `condition` returns true. Returns false if that takes longer than a minute.
  template <typename Condition>
  [[nodiscard]] bool until(const Condition& condition) {
    const absl::Duration start = test_env().clock->since_start();
    while (!condition()) {
      if (test_env().clock->since_start() - start > absl::Minutes(1)) return false;
      turn();
    }
    return true;
  }

  [[nodiscard]] bool connect() {
    return until([this] { return all([](const TestRank& rank) { return rank.connected; }); });
  }

  template <typename Predicate>
  bool all(const Predicate& predicate) const {
    for (const auto& rank : ranks_) {
      if (rank->group != nullptr && !predicate(*rank)) return false;
    }
    return true;
  }

  void register_tensors(const std::vector<local::TensorShape>& shapes) {
    for (auto& rank : ranks_) {
      EXPECT_TRUE(rank->group->register_tensors(shapes).ok());
      rank->shapes.insert(rank->shapes.end(), shapes.begin(), shapes.end());
    }
  }

 private:
  const std::array<uint8_t, 32> secret_;
  const size_t gpu_bytes_;
  std::vector<std::unique_ptr<TestRank>> ranks_;
};

// Returns random finite numbers of `type`, of similar magnitudes, so that their sums must be rounded.
inline std::vector<std::byte> random_tensor(DataType type, size_t elements, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(elements * size_of(type));
  for (size_t i = 0; i < elements; ++i) {
    std::byte* at = bytes.data() + i * size_of(type);
    const uint64_t bits = random();
    switch (type) {
      case DataType::kFloat32: {
        const float value = static_cast<float>(static_cast<int64_t>(bits)) * 0x1p-60f;
        std::memcpy(at, &value, sizeof(value));
        break;
      }
      case DataType::kFloat64: {
        const double value = static_cast<double>(static_cast<int64_t>(bits)) * 0x1p-60;
        std::memcpy(at, &value, sizeof(value));
        break;
      }
      case DataType::kFloat16: {  // any sign and mantissa, exponents 8 ... 23
        const auto value = static_cast<uint16_t>((bits & 0x83FF) | (8 + (bits >> 32 & 15)) << 10);
        std::memcpy(at, &value, sizeof(value));
        break;
      }
      case DataType::kBFloat16: {  // exponents 120 ... 135
        const auto value = static_cast<uint16_t>((bits & 0x807F) | (120 + (bits >> 32 & 15)) << 7);
        std::memcpy(at, &value, sizeof(value));
        break;
      }
      case DataType::kInt32:
        std::memcpy(at, &bits, sizeof(uint32_t));
    }
  }
  return bytes;
}

// Returns the sum in rank order, computed with the scalar kernel.
inline std::vector<std::byte> expected_sum(DataType type, const std::vector<std::vector<std::byte>>& inputs) {
  static const kernels::Kernels oracle = *kernels::Kernels::choose("scalar");
  std::vector<const std::byte*> sources;
  for (const auto& input : inputs) sources.push_back(input.data());
  std::vector<std::byte> sum(inputs[0].size());
  oracle.sum(type, sources, sum.data(), sum.size() / size_of(type), 1);
  return sum;
}

}  // namespace gleaner::testing
