// One suite over the kernels of every Device: the host, GPU 0 of the double, or of a real driver
// (GLEANER_TEST_LIBCUDA). Each sum is compared with common/kernels' oracle, bit by bit.
#include "comm-lib/device/kernels/kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "comm-lib/device/host_device.h"
#include "comm-lib/device/kernels/sum_launch.h"
#include "common/kernels/kernels.h"
#include "tests/unit/device/caller.h"
#include "tests/unit/device_kernels/double_image.h"
#include "tests/unit/kernels/hard_values.h"

namespace gleaner::device {
namespace {

constexpr size_t kArenaBytes = 9 << 20;

// A device with kernels, and an arena in its memory.
class Subject {
 public:
  virtual ~Subject() = default;
  std::unique_ptr<Device> device;
  std::unique_ptr<Kernels> kernels;
  Address arena{};
};

class Host final : public Subject {
 public:
  Host() : memory_(*open_host_device()->allocate_pinned(kArenaBytes)) {
    device = open_host_device();
    kernels = *Kernels::load(device.get());
    arena = Address{reinterpret_cast<uint64_t>(memory_->bytes().data())};
  }

 private:
  const std::unique_ptr<PinnedMemory> memory_;
};

class Gpu final : public Subject {
 public:
  Gpu() {
    const char* real = std::getenv("GLEANER_TEST_LIBCUDA");
    const std::string library = real == nullptr ? CUDA_DOUBLE : real;
    if (real == nullptr) {
      double_ = std::make_unique<Double>();
      double_->reset(0, 2, 12040);
    }
    driver_ = *Driver::load(library);
    caller_ = std::make_unique<Caller>(driver_, 0, library);
    device = *open_cuda_device(driver_, 0);
    kernels = *(real == nullptr ? Kernels::load(device.get(), kDoubleImage) : Kernels::load(device.get()));
    arena = Address{caller_->allocate(kArenaBytes)};
  }
  ~Gpu() override {
    kernels.reset();
    device.reset();
    caller_.reset();
    if (double_ != nullptr) {
      EXPECT_EQ(double_->take_findings(), "");
    }
  }

 private:
  std::unique_ptr<Double> double_;
  std::shared_ptr<const Driver> driver_;
  std::unique_ptr<Caller> caller_;
};

struct Case {
  std::string name;
  std::function<std::unique_ptr<Subject>()> make;
};

// Where a sum's operands lie in the arena, in bytes.
struct Operands {
  std::vector<size_t> sources;
  size_t result = 0;
  size_t end = 0;
};

// Puts the operands behind each other. Source i is `offset_of(i)` elements behind a multiple of 64 bytes, and so is the
// result, as the last one.
Operands lay_out(const SumKernel& kernel, size_t count, size_t elements,
                 const std::function<size_t(size_t)>& offset_of) {
  Operands operands;
  const auto put = [&](size_t element_bytes, size_t i) {
    const size_t begin = operands.end + offset_of(i) * element_bytes;
    operands.end = (begin + elements * element_bytes + 127) / 64 * 64;
    return begin;
  };
  for (size_t i = 0; i < count; ++i) operands.sources.push_back(put(size_of(kernel.from), i));
  operands.result = put(size_of(kernel.to), count);
  return operands;
}

class DeviceKernels : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (GetParam().name == "gpu" && std::getenv("GLEANER_TEST_LIBCUDA") != nullptr && kernel_image().empty()) {
      GTEST_SKIP() << "built without nvcc";
    }
    subject_ = GetParam().make();
    completions_ = *Completions::create();
    stream_ = *subject_->device->create_stream(Priority::kHigh);
    before_ = *subject_->device->allocate_pinned(kArenaBytes);
    after_ = *subject_->device->allocate_pinned(kArenaBytes);
  }

  Address in_arena(size_t at) const { return Address{static_cast<uint64_t>(subject_->arena) + at}; }

  // Fills the arena, sums, and compares the whole arena with the oracle's.
  void expect_oracles_bits(const SumKernel& kernel, const Operands& operands, size_t elements, uint32_t divisor) {
    ASSERT_LE(operands.end, kArenaBytes);
    const MutableBytes before = before_->bytes().first(operands.end);
    const MutableBytes after = after_->bytes().first(operands.end);
    std::memset(before.data(), 0x5A, before.size());
    std::vector<Address> sources;
    for (const size_t source : operands.sources) {
      kernels::fill(kernel.from, before.subspan(source, elements * size_of(kernel.from)), random_);
      sources.push_back(in_arena(source));
    }
    ASSERT_TRUE(stream_->copy_to_device(before, subject_->arena).ok());
    const absl::Status status =
        subject_->kernels->sum(*stream_, kernel.from, kernel.to, sources, in_arena(operands.result), elements, divisor);
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(stream_->copy_to_host(subject_->arena, after).ok());
    ASSERT_TRUE(stream_->notify(*completions_, 0).ok());
    ASSERT_EQ(await(*completions_, 1).size(), 1u);

    std::vector<const std::byte*> expected_sources;
    for (const size_t source : operands.sources) expected_sources.push_back(before.data() + source);
    oracle_.sum(kernel.from, kernel.to, expected_sources, before.data() + operands.result, elements, divisor);
    ASSERT_EQ(std::memcmp(before.data(), after.data(), before.size()), 0)
        << kernel.name << ", elements " << elements << ", sources " << sources.size() << ", divisor " << divisor
        << ", first source at " << operands.sources[0] % 64 << ", result at " << operands.result % 64;
  }

  const kernels::Kernels oracle_ = *kernels::Kernels::choose("scalar");
  std::mt19937_64 random_{7};
  std::unique_ptr<Subject> subject_;
  std::unique_ptr<Completions> completions_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<PinnedMemory> before_;
  std::unique_ptr<PinnedMemory> after_;
};

std::vector<uint32_t> divisors_of(const SumKernel& kernel) {
  return kernel.from == DataType::kInt32 ? std::vector<uint32_t>{1} : std::vector<uint32_t>{1, 2, 3, 7, 8};
}

TEST_P(DeviceKernels, HaveTheOraclesBits) {
  for (const SumKernel& kernel : kSumKernels) {
    for (size_t elements = 1; elements <= 70; ++elements) {
      const size_t count = 1 + elements % 11;
      const size_t offset = elements % 9;
      const uint32_t divisor = divisors_of(kernel)[elements % divisors_of(kernel).size()];
      const Operands alike = lay_out(kernel, count, elements, [&](size_t) { return offset; });
      ASSERT_NO_FATAL_FAILURE(expect_oracles_bits(kernel, alike, elements, divisor));
      const Operands unlike = lay_out(kernel, count, elements, [&](size_t i) { return (offset + i) % 9; });
      ASSERT_NO_FATAL_FAILURE(expect_oracles_bits(kernel, unlike, elements, divisor));
    }
  }
}

TEST_P(DeviceKernels, SumEveryNumberOfSources) {
  for (const SumKernel& kernel : kSumKernels) {
    for (size_t count = 1; count <= kMostSources; ++count) {
      const Operands operands = lay_out(kernel, count, 300, [&](size_t) { return count % 4; });
      ASSERT_NO_FATAL_FAILURE(expect_oracles_bits(kernel, operands, 300, 1));
    }
  }
}

TEST_P(DeviceKernels, DivideLikeTheOracle) {
  for (const SumKernel& kernel : kSumKernels) {
    for (const uint32_t divisor : divisors_of(kernel)) {
      const Operands operands = lay_out(kernel, 3, 5000, [](size_t) { return 0; });
      ASSERT_NO_FATAL_FAILURE(expect_oracles_bits(kernel, operands, 5000, divisor));
    }
  }
}

TEST_P(DeviceKernels, MayOverwriteAnySource) {
  for (const SumKernel& kernel : kSumKernels) {
    if (kernel.from != kernel.to) continue;
    for (size_t source = 0; source < 6; ++source) {
      Operands operands = lay_out(kernel, 6, 1000, [&](size_t) { return source; });
      operands.result = operands.sources[source];
      ASSERT_NO_FATAL_FAILURE(expect_oracles_bits(kernel, operands, 1000, 1));
    }
  }
}

// The GPU has 1024 blocks of 256 threads, so threads take several elements, or several vectors.
TEST_P(DeviceKernels, SumMoreElementsThanThreads) {
  constexpr size_t kThreads = 1024 * kThreadsPerBlock;
  const SumKernel& wide = kSumKernels[*find_sum_kernel(DataType::kFloat32, DataType::kFloat32)];
  const Operands single = lay_out(wide, 2, kThreads + 1000, [](size_t i) { return i; });
  ASSERT_NO_FATAL_FAILURE(expect_oracles_bits(wide, single, kThreads + 1000, 3));
  const SumKernel& vector = kSumKernels[*find_sum_kernel(DataType::kInt32, DataType::kInt32)];
  const size_t many = 4 * kThreads + 1000;
  const Operands vectors = lay_out(vector, 1, many, [](size_t) { return 1; });
  ASSERT_NO_FATAL_FAILURE(expect_oracles_bits(vector, vectors, many, 1));
}

TEST_P(DeviceKernels, PartialSumsAreOfTheAccumulatorsType) {
  const auto slot = *subject_->device->allocate_pinned(64);
  const uint16_t half = 0x74E2;  // 20000; four of them exceed the range of fp16
  std::memcpy(slot->bytes().data(), &half, sizeof(half));
  ASSERT_TRUE(stream_->copy_to_device(slot->bytes(), subject_->arena).ok());
  const std::vector<Address> sources(4, subject_->arena);
  ASSERT_TRUE(subject_->kernels->sum(*stream_, DataType::kFloat16, sources, in_arena(64), 1).ok());
  const auto result = *subject_->device->allocate_pinned(4);
  ASSERT_TRUE(stream_->copy_to_host(in_arena(64), result->bytes()).ok());
  ASSERT_TRUE(stream_->notify(*completions_, 0).ok());
  await(*completions_, 1);
  float sum = 0;
  std::memcpy(&sum, result->bytes().data(), sizeof(sum));
  EXPECT_EQ(sum, 80000.0f);
}

TEST_P(DeviceKernels, NoElementsNeedNoMemory) {
  EXPECT_TRUE(subject_->kernels->sum(*stream_, DataType::kFloat32, std::vector<Address>(2), Address{}, 0).ok());
}

INSTANTIATE_TEST_SUITE_P(Host, DeviceKernels, ::testing::Values(Case{"host", [] { return std::make_unique<Host>(); }}),
                         [](const auto& tested) { return tested.param.name; });

INSTANTIATE_TEST_SUITE_P(Gpu, DeviceKernels, ::testing::Values(Case{"gpu", [] { return std::make_unique<Gpu>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gleaner::device
