// One suite over every Device: the host, and GPU 0 of the double with several seeds, or of a real driver
// (GLEANER_TEST_LIBCUDA).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

#include "comm-lib/device/host_device.h"
#include "tests/unit/device/caller.h"

namespace gleaner::device {
namespace {

constexpr size_t kBytes = 100000;

// A device, and a caller of it.
class Subject {
 public:
  virtual ~Subject() = default;
  std::unique_ptr<Device> device;
  CallerStream stream{};  // of the caller
  virtual Address make_tensor(size_t bytes) = 0;
  // Queues a write of `value`, on the caller's stream.
  virtual void write(Address to, size_t bytes, int value) = 0;
  // Reads on the caller's stream, and waits for it.
  virtual ConstBytes read(Address from, size_t bytes) = 0;
};

class Host final : public Subject {
 public:
  Host() { device = open_host_device(); }
  Address make_tensor(size_t bytes) override {
    return Address{reinterpret_cast<uint64_t>(tensors_.emplace_back(std::make_unique<std::byte[]>(bytes)).get())};
  }
  void write(Address to, size_t bytes, int value) override { std::memset(pointer(to), value, bytes); }
  ConstBytes read(Address from, size_t bytes) override { return {pointer(from), bytes}; }

 private:
  static std::byte* pointer(Address address) { return reinterpret_cast<std::byte*>(address); }
  std::vector<std::unique_ptr<std::byte[]>> tensors_;
};

class Gpu final : public Subject {
 public:
  // Seed 0: the caller uses the legacy default stream.
  explicit Gpu(uint64_t seed) {
    const char* real = std::getenv("GLEANER_TEST_LIBCUDA");
    const std::string library = real == nullptr ? CUDA_DOUBLE : real;
    if (real == nullptr) {
      double_ = std::make_unique<Double>();
      double_->reset(seed, 2, 12040);
    }
    driver_ = *Driver::load(library);
    caller_ = std::make_unique<Caller>(driver_, 0, library);
    stream_ = seed == 0 ? nullptr : caller_->create_stream();
    stream = number_of(stream_);
    device = *open_cuda_device(driver_, 0);
  }
  ~Gpu() override {
    EXPECT_EQ(caller_->current_context(), caller_->context());
    device.reset();
    caller_.reset();
    if (double_ != nullptr) {
      EXPECT_EQ(double_->take_findings(), "");
    }
  }
  Address make_tensor(size_t bytes) override { return Address{caller_->allocate(bytes)}; }
  void write(Address to, size_t bytes, int value) override {
    caller_->write(stream_, static_cast<CUdeviceptr>(to), bytes, value);
  }
  ConstBytes read(Address from, size_t bytes) override {
    const ConstBytes bytes_read = caller_->read(stream_, static_cast<CUdeviceptr>(from), bytes);
    caller_->synchronize(stream_);
    return bytes_read;
  }

 private:
  std::unique_ptr<Double> double_;
  std::shared_ptr<const Driver> driver_;
  std::unique_ptr<Caller> caller_;
  CUstream stream_ = nullptr;
};

struct Case {
  std::string name;
  std::function<std::unique_ptr<Subject>()> make;
};

class DeviceConformance : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    subject = GetParam().make();
    completions = *Completions::create();
    stream = *device().create_stream(Priority::kHigh);
  }
  Device& device() const { return *subject->device; }
  std::unique_ptr<Event> make_event() const { return *device().create_event(); }

  std::unique_ptr<Subject> subject;
  std::unique_ptr<Completions> completions;
  std::unique_ptr<Stream> stream;
};

#define ASSERT_OK(expression) ASSERT_TRUE((expression).ok())

TEST_P(DeviceConformance, CopiesToTheHostAndBack) {
  const Address tensor = subject->make_tensor(kBytes);
  const auto slot = *device().allocate_pinned(kBytes);
  const auto ready = make_event();
  const auto copied = make_event();

  subject->write(tensor, kBytes, 7);
  ASSERT_OK(device().record(subject->stream, *ready));
  ASSERT_OK(stream->wait_for(*ready));
  ASSERT_OK(stream->copy_to_host(tensor, slot->bytes()));
  ASSERT_OK(stream->notify(*completions, 1));
  ASSERT_THAT(await(*completions, 1), ::testing::ElementsAre(1));
  EXPECT_TRUE(all_are(slot->bytes(), 7));

  std::memset(slot->bytes().data(), 8, kBytes);
  ASSERT_OK(stream->copy_to_device(slot->bytes(), tensor));
  ASSERT_OK(stream->record(*copied));
  ASSERT_OK(stream->notify(*completions, 2));
  ASSERT_OK(device().hold(subject->stream, *copied));
  EXPECT_TRUE(all_are(subject->read(tensor, kBytes), 8));
  EXPECT_THAT(await(*completions, 1), ::testing::ElementsAre(2));
  EXPECT_TRUE(stream->check().ok());
}

TEST_P(DeviceConformance, StreamsRunBesideEachOther) {
  constexpr size_t kStreams = 4;
  const Address tensor = subject->make_tensor(kStreams * kBytes);
  const auto memory = *device().allocate_pinned(kStreams * kBytes);
  const auto ready = make_event();
  subject->write(tensor, kStreams * kBytes, 3);
  ASSERT_OK(device().record(subject->stream, *ready));

  std::vector<std::unique_ptr<Stream>> streams;
  for (size_t i = 0; i < kStreams; ++i) {
    streams.push_back(*device().create_stream(i == 0 ? Priority::kHigh : Priority::kNormal));
    ASSERT_OK(streams[i]->wait_for(*ready));
    ASSERT_OK(streams[i]->copy_to_host(Address{static_cast<uint64_t>(tensor) + i * kBytes},
                                       memory->bytes().subspan(i * kBytes, kBytes)));
    ASSERT_OK(streams[i]->notify(*completions, i));
  }
  EXPECT_THAT(await(*completions, kStreams), ::testing::UnorderedElementsAre(0, 1, 2, 3));
  EXPECT_TRUE(all_are(memory->bytes(), 3));
}

TEST_P(DeviceConformance, EmptyCopiesNeedNoMemory) {
  EXPECT_TRUE(stream->copy_to_host(Address{}, {}).ok());
  EXPECT_TRUE(stream->copy_to_device({}, Address{}).ok());
}

TEST_P(DeviceConformance, UnrecordedEventIsNotDone) {
  const auto event = make_event();
  EXPECT_FALSE(event->is_recorded());
  EXPECT_FALSE(*event->is_done());
  EXPECT_EQ(stream->wait_for(*event).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(device().hold(subject->stream, *event).code(), absl::StatusCode::kFailedPrecondition);
}

TEST_P(DeviceConformance, EventIsDoneAfterItsWork) {
  const auto event = make_event();
  ASSERT_OK(stream->record(*event));
  ASSERT_OK(stream->notify(*completions, 0));
  await(*completions, 1);
  EXPECT_TRUE(*event->is_done());
  event->forget();
  EXPECT_FALSE(*event->is_done());
}

TEST_P(DeviceConformance, CompletionsKeepTheOrderOfAStream) {
  constexpr size_t kCount = 200;
  for (uint64_t tag = 0; tag < kCount; ++tag) ASSERT_OK(stream->notify(*completions, tag));
  std::vector<uint64_t> expected(kCount);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(await(*completions, kCount), expected);
  EXPECT_EQ(completions->pending(), 0);
}

TEST_P(DeviceConformance, DescriptorIsUnreadableWithoutWork) {
  pollfd readable{completions->descriptor(), POLLIN, 0};
  EXPECT_EQ(poll(&readable, 1, 0), 0);
}

TEST_P(DeviceConformance, CompletionsMayEndBeforeTheirWork) {
  const auto others = *Completions::create();
  ASSERT_OK(stream->notify(*completions, 1));
  completions.reset();
  ASSERT_OK(stream->notify(*others, 2));
  EXPECT_THAT(await(*others, 1), ::testing::ElementsAre(2));
}

TEST_P(DeviceConformance, StreamMayEndBeforeItsWork) {
  const auto memory = *device().allocate_pinned(kBytes);
  const Address tensor = subject->make_tensor(kBytes);
  std::memset(memory->bytes().data(), 5, kBytes);
  ASSERT_OK(stream->copy_to_device(memory->bytes(), tensor));
  ASSERT_OK(stream->notify(*completions, 1));
  stream.reset();
  await(*completions, 1);
  EXPECT_TRUE(all_are(subject->read(tensor, kBytes), 5));
}

TEST_P(DeviceConformance, PinnedMemoryIsPageAligned) {
  const auto memory = *device().allocate_pinned(100);
  EXPECT_EQ(memory->bytes().size(), 100);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory->bytes().data()) % 4096, 0);
}

INSTANTIATE_TEST_SUITE_P(Host, DeviceConformance,
                         ::testing::Values(Case{"host", [] { return std::make_unique<Host>(); }}),
                         [](const auto& tested) { return tested.param.name; });

std::vector<Case> gpu_cases() {
  std::vector<Case> cases;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    cases.push_back({"seed" + std::to_string(seed), [seed] { return std::make_unique<Gpu>(seed); }});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Gpu, DeviceConformance, ::testing::ValuesIn(gpu_cases()),
                         [](const auto& tested) { return tested.param.name; });

TEST(HostDevice, RefusesCudaStreams) {
  const auto device = open_host_device();
  const auto event = *device->create_event();
  EXPECT_EQ(device->record(CallerStream{1}, *event).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(device->hold(CallerStream{1}, *event).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace gleaner::device
