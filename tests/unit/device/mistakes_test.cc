// A program that sends three tensors through a ring of two slots, to the host and back, rightly and with one mistake at
// a time. The double or the bytes tell each mistake, whatever the seed. GLN_MUTATION of the pure cores does the same.
#include <array>
#include <cstring>

#include "comm-lib/device/event_pool.h"
#include "comm-lib/device/pinned_ring.h"
#include "tests/unit/device/gpus.h"

namespace gleaner::device {
namespace {

using ::testing::HasSubstr;

enum class Mistake {
  kNone,
  kNoWaitForProducer,   // our stream does not wait for the caller's
  kReadsEarly,          // the host reads a slot before its copy is done
  kReusesSlotOfResult,  // the slot of a copy to the host is given back before it is done
  kReusesSlotOfSource,  // the slot of a copy to the GPU is written before it is done
  kDestroysEvent,       // the event is destroyed while streams wait for it
  kNoHold,              // the caller's stream does not wait for the result
};

struct Outcome {
  bool has_right_bytes = true;
  std::string findings;
};

// The caller's streams are held until all is queued, so that no mistake goes well by luck.
class RoundTrip {
 public:
  RoundTrip(uint64_t seed, Mistake mistake) : mistake_(mistake) {
    double_.reset(seed, 2, kVersion);
    driver_ = *Driver::load(CUDA_DOUBLE);
    caller_ = std::make_unique<Caller>(driver_, 0);
    kernels_ = caller_->create_stream();
    other_ = caller_->create_stream();
    device_ = *open_cuda_device(driver_, 0);
    stream_ = *device_->create_stream(Priority::kHigh);
    area_ = *device_->allocate_pinned(2 * kBytes);
    ring_ = std::make_unique<PinnedRing>(area_->bytes(), kBytes);
    for (CUdeviceptr& tensor : tensors_) tensor = caller_->allocate(kBytes);
    spare_ = caller_->allocate(kBytes);
  }
  ~RoundTrip() {
    stream_.reset();
    area_.reset();
    device_.reset();
    caller_.reset();
    double_.take_findings();
  }

  Outcome run() {
    double_.hold(kernels_, 1);
    for (int i = 0; i < 3; ++i) caller_->write(kernels_, tensors_[i], kBytes, i + 1);
    wait_for_caller(kernels_);
    to_host();
    to_device();
    outcome_.findings = double_.take_findings();
    return outcome_;
  }

 private:
  void expect(bool is_right) { outcome_.has_right_bytes = outcome_.has_right_bytes && is_right; }

  // Makes our stream wait for all that is queued on a stream of the caller.
  void wait_for_caller(CUstream producer) {
    auto ready = *device_->create_event();
    ASSERT_TRUE(device_->record(number_of(producer), *ready).ok());
    if (mistake_ != Mistake::kNoWaitForProducer) {
      ASSERT_TRUE(stream_->wait_for(*ready).ok());
    }
    if (mistake_ != Mistake::kDestroysEvent) events_.push_back(std::move(ready));
  }

  // Copies a tensor into the next slot of the ring.
  void fetch(size_t i) {
    slots_[i] = *ring_->take(kBytes);
    ASSERT_TRUE(stream_->copy_to_host(Address{tensors_[i]}, slots_[i]).ok());
    ASSERT_TRUE(stream_->notify(*completions_, i).ok());
  }

  void to_host() {
    fetch(0);
    fetch(1);
    if (mistake_ == Mistake::kReadsEarly) expect(all_are(slots_[0], 1));
    if (mistake_ == Mistake::kReusesSlotOfResult) {
      ASSERT_TRUE(ring_->give_back(slots_[0]).ok());
      fetch(2);
    }
    const bool is_behind_producer = mistake_ != Mistake::kNoWaitForProducer;
    // Our copies end before the producer begins in place of at the same time, so that TSan sees no race.
    if (!is_behind_producer) await(*completions_, 2);
    double_.hold(kernels_, 0);
    caller_->synchronize(kernels_);
    if (is_behind_producer) await(*completions_, mistake_ == Mistake::kReusesSlotOfResult ? 3 : 2);
    expect(all_are(slots_[0], 1) && all_are(slots_[1], 2));
    if (mistake_ == Mistake::kReusesSlotOfResult) return;
    ASSERT_TRUE(ring_->give_back(slots_[0]).ok());
    fetch(2);
    await(*completions_, 1);
    expect(all_are(slots_[2], 3));
  }

  // Copies the result of tensor 1 back, behind other work. The caller reads it when the copy is done.
  void to_device() {
    double_.hold(other_, 1);
    double_.hold(kernels_, 1);
    caller_->write(other_, spare_, kBytes, 0);
    wait_for_caller(other_);
    std::memset(slots_[1].data(), 9, kBytes);
    ASSERT_TRUE(stream_->copy_to_device(slots_[1], Address{tensors_[1]}).ok());
    events_.push_back(*device_->create_event());
    Event& copied = *events_.back();
    ASSERT_TRUE(stream_->record(copied).ok());
    ASSERT_TRUE(stream_->notify(*completions_, 1).ok());
    if (mistake_ == Mistake::kReusesSlotOfSource) std::memset(slots_[1].data(), 8, kBytes);
    if (mistake_ != Mistake::kNoHold) {
      ASSERT_TRUE(device_->hold(number_of(kernels_), copied).ok());
    }
    const ConstBytes seen = caller_->read(kernels_, tensors_[1], kBytes);
    double_.hold(other_, 0);
    await(*completions_, 1);
    double_.hold(kernels_, 0);
    caller_->synchronize(kernels_);
    expect(all_are(seen, 9));
  }

  const Mistake mistake_;
  const Double double_;
  std::shared_ptr<const Driver> driver_;
  std::unique_ptr<Caller> caller_;
  CUstream kernels_ = nullptr;  // makes the tensors and uses the results
  CUstream other_ = nullptr;
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Event>> events_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Completions> completions_ = *Completions::create();
  std::unique_ptr<PinnedMemory> area_;
  std::unique_ptr<PinnedRing> ring_;
  std::array<CUdeviceptr, 3> tensors_{};
  CUdeviceptr spare_ = 0;
  std::array<MutableBytes, 3> slots_;
  Outcome outcome_;
};

class Mistakes : public ::testing::TestWithParam<uint64_t> {
 protected:
  static Outcome run(Mistake mistake) { return RoundTrip(GetParam(), mistake).run(); }
};

TEST_P(Mistakes, RightProgramHasNoFindings) {
  const Outcome outcome = run(Mistake::kNone);
  EXPECT_TRUE(outcome.has_right_bytes);
  EXPECT_EQ(outcome.findings, "");
}

TEST_P(Mistakes, MissingWaitForTheProducerIsFound) {
  const Outcome outcome = run(Mistake::kNoWaitForProducer);
  EXPECT_FALSE(outcome.has_right_bytes);
  EXPECT_THAT(outcome.findings, HasSubstr("unordered"));
}

TEST_P(Mistakes, EarlyReadOfAResultIsFound) { EXPECT_FALSE(run(Mistake::kReadsEarly).has_right_bytes); }

TEST_P(Mistakes, SlotWithTwoResultsIsFound) {
  const Outcome outcome = run(Mistake::kReusesSlotOfResult);
  EXPECT_FALSE(outcome.has_right_bytes);
  EXPECT_THAT(outcome.findings, HasSubstr("overwritten"));
}

TEST_P(Mistakes, SlotWithTwoSourcesIsFound) {
  const Outcome outcome = run(Mistake::kReusesSlotOfSource);
  EXPECT_FALSE(outcome.has_right_bytes);
  EXPECT_THAT(outcome.findings, HasSubstr("source changed"));
}

TEST_P(Mistakes, EarlyEndOfAnEventIsFound) {
  EXPECT_THAT(run(Mistake::kDestroysEvent).findings, HasSubstr("event early"));
}

TEST_P(Mistakes, MissingWaitOfTheConsumerIsFound) {
  EXPECT_THAT(run(Mistake::kNoHold).findings, HasSubstr("unordered"));
}

INSTANTIATE_TEST_SUITE_P(Seeds, Mistakes, ::testing::Range<uint64_t>(0, 6));

// A library that does not make its GPU current uses that of the caller.
TEST(WrongContext, IsRefusedByTheDriver) {
  const Double cuda;
  cuda.reset(1, 2, kVersion);
  const auto driver = *Driver::load(CUDA_DOUBLE);
  CudaApi api = driver->api();
  api.cuCtxPushCurrent = [](CUcontext) { return CUDA_SUCCESS; };
  api.cuCtxPopCurrent = [](CUcontext*) { return CUDA_SUCCESS; };
  Caller on_gpu_0(driver, 0);
  const CUstream kernels = on_gpu_0.create_stream();
  Caller on_gpu_1(driver, 1);
  {
    const auto device = *open_cuda_device(*Driver::start(api), 0);
    const auto event = *device->create_event();
    EXPECT_THAT(device->record(number_of(kernels), *event), IsError(absl::StatusCode::kInvalidArgument, "another GPU"));
  }
  cuda.take_findings();
}

}  // namespace
}  // namespace gleaner::device
