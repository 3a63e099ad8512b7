// Compares copies between a GPU and pinned host memory by comm-lib/device with the same copies by cuMemcpyDtoHAsync and
// cuMemcpyHtoDAsync, and by cudaMemcpyAsync if --libcudart names CUDA's runtime. Prints JSON: one object for each
// direction, size and number of streams, with the median rate of each contender in bytes per second.
//
// comm-lib/device tells of the end of each copy (Stream::notify); the others queue all copies and wait once. The
// contenders take turns, since the clocks of a GPU and its link change with time.
#include <dlfcn.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "comm-lib/device/completions.h"
#include "comm-lib/device/cuda_device.h"
#include "common/flags/command.h"

namespace gleaner::device {
namespace {

struct Options {
  std::string libcuda = "libcuda.so.1";
  std::string libcudart;
  int ordinal = 0;
  int rounds = 7;
  uint64_t round_bytes = uint64_t{256} << 20;  // copied in each direction in a round
  uint64_t largest = uint64_t{64} << 20;       // bytes of the largest copy
};

constexpr uint64_t kSmallest = 64 << 10;
constexpr size_t kMostCopies = 512;  // of a round
constexpr int kDeviceToHost = 2;     // cudaMemcpyDeviceToHost
constexpr int kHostToDevice = 1;     // cudaMemcpyHostToDevice

[[noreturn]] void fail(const std::string& text) { throw std::runtime_error(text); }
void must(const absl::Status& status) {
  if (!status.ok()) fail(std::string(status.message()));
}
template <typename T>
T must(absl::StatusOr<T> value) {
  must(value.status());
  return std::move(*value);
}

template <typename Function>
Function find(const std::string& library, const char* name) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) fail(dlerror());
  void* symbol = dlsym(handle, name);
  if (symbol == nullptr) fail(library + " lacks " + name);
  return reinterpret_cast<Function>(symbol);
}

enum class Direction { kToHost, kToDevice, kBoth };
const char* name_of(Direction direction) {
  return direction == Direction::kToHost ? "to host" : direction == Direction::kToDevice ? "to device" : "both";
}

struct Pattern {
  Direction direction;
  uint64_t bytes;  // of a copy
  size_t copies;   // in each direction
  size_t streams;  // of comm-lib/device, in each direction
  bool has(Direction which) const { return direction == which || direction == Direction::kBoth; }
};

// The memory of one direction: `largest` bytes on the GPU and in pinned memory, through which copies go round.
struct Lane {
  uint64_t device = 0;
  std::unique_ptr<PinnedMemory> pinned;
  CUstream plain = nullptr;                      // of the driver's and the runtime's copies
  std::vector<std::unique_ptr<Stream>> streams;  // of comm-lib/device
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        driver_(must(Driver::load(options.libcuda))),
        device_(must(open_cuda_device(driver_, options.ordinal))),
        completions_(must(Completions::create())),
        synchronize_(find<CUresult (*)(CUstream)>(options.libcuda, "cuStreamSynchronize")) {
    CUdevice gpu = 0;
    check(driver_->api().cuDeviceGet(&gpu, options.ordinal), "get the GPU");
    CUcontext context = nullptr;
    check(driver_->api().cuDevicePrimaryCtxRetain(&context, gpu), "retain the context");
    check(driver_->api().cuCtxPushCurrent(context), "make the context current");
    if (!options.libcudart.empty()) runtime_copy_ = find<RuntimeCopy>(options.libcudart, "cudaMemcpyAsync");
    for (Lane* lane : {&to_host_, &to_device_}) prepare(*lane);
  }

  nlohmann::json measure(const Pattern& pattern) {
    std::map<std::string, std::function<void()>> contenders;
    contenders["gleaner"] = [&] { ours(pattern); };
    contenders["driver"] = [&] { plain(pattern, false); };
    if (runtime_copy_ != nullptr) contenders["runtime"] = [&] { plain(pattern, true); };
    std::map<std::string, std::vector<double>> seconds;
    for (int round = -1; round < options_.rounds; ++round) {  // round -1 warms up
      for (const auto& [name, copy] : contenders) {
        const auto start = std::chrono::steady_clock::now();
        copy();
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
        if (round >= 0) seconds[name].push_back(took.count());
      }
    }
    nlohmann::json row = {{"direction", name_of(pattern.direction)},
                          {"bytes", pattern.bytes},
                          {"copies", pattern.copies},
                          {"streams", pattern.streams}};
    const double moved =
        static_cast<double>(pattern.bytes * pattern.copies * (pattern.direction == Direction::kBoth ? 2 : 1));
    for (auto& [name, all] : seconds) {
      std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
      row["bytes_per_second"][name] = moved / all[all.size() / 2];
    }
    return row;
  }

  const DeviceInfo& info() const { return device_->info(); }

 private:
  using RuntimeCopy = int (*)(void* to, const void* from, size_t bytes, int kind, CUstream stream);

  void check(CUresult result, const char* action) const { must(driver_->check(result, action)); }

  void prepare(Lane& lane) {
    const auto allocate = find<CUresult (*)(CUdeviceptr*, size_t)>(options_.libcuda, "cuMemAlloc_v2");
    check(allocate(&lane.device, options_.largest), "allocate memory of the GPU");
    lane.pinned = must(device_->allocate_pinned(options_.largest));
    check(driver_->api().cuStreamCreateWithPriority(&lane.plain, CU_STREAM_NON_BLOCKING, 0), "create a stream");
    for (int i = 0; i < 2; ++i) lane.streams.push_back(must(device_->create_stream(Priority::kHigh)));
  }

  // Returns where copy i of a pattern is in the memory of a lane.
  uint64_t offset(const Pattern& pattern, size_t i) const {
    return i % (options_.largest / pattern.bytes) * pattern.bytes;
  }

  void ours(const Pattern& pattern) {
    size_t queued = 0;
    for (size_t i = 0; i < pattern.copies; ++i) {
      const uint64_t at = offset(pattern, i);
      for (Lane* lane : {&to_host_, &to_device_}) {
        if (!pattern.has(lane == &to_host_ ? Direction::kToHost : Direction::kToDevice)) continue;
        Stream& stream = *lane->streams[i % pattern.streams];
        const MutableBytes slot = lane->pinned->bytes().subspan(at, pattern.bytes);
        must(lane == &to_host_ ? stream.copy_to_host(Address{lane->device + at}, slot)
                               : stream.copy_to_device(slot, Address{lane->device + at}));
        must(stream.notify(*completions_, queued++));
      }
    }
    tags_.clear();
    while (tags_.size() < queued) {
      pollfd readable{completions_->descriptor(), POLLIN, 0};
      if (poll(&readable, 1, 10000) != 1) fail("no copy ended within 10 seconds");
      completions_->take(tags_);
    }
  }

  void plain(const Pattern& pattern, bool by_runtime) {
    for (size_t i = 0; i < pattern.copies; ++i) {
      const uint64_t at = offset(pattern, i);
      if (pattern.has(Direction::kToHost)) {
        std::byte* slot = to_host_.pinned->bytes().data() + at;
        by_runtime ? copy_by_runtime(slot, pointer(to_host_.device + at), pattern.bytes, kDeviceToHost, to_host_.plain)
                   : check(driver_->api().cuMemcpyDtoHAsync(slot, to_host_.device + at, pattern.bytes, to_host_.plain),
                           "copy to the host");
      }
      if (pattern.has(Direction::kToDevice)) {
        const std::byte* slot = to_device_.pinned->bytes().data() + at;
        by_runtime
            ? copy_by_runtime(pointer(to_device_.device + at), slot, pattern.bytes, kHostToDevice, to_device_.plain)
            : check(driver_->api().cuMemcpyHtoDAsync(to_device_.device + at, slot, pattern.bytes, to_device_.plain),
                    "copy to the GPU");
      }
    }
    for (const Lane* lane : {&to_host_, &to_device_}) check(synchronize_(lane->plain), "wait for a stream");
  }

  static void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }  // NOLINT(*-int-to-ptr)
  void copy_by_runtime(void* to, const void* from, size_t bytes, int kind, CUstream stream) const {
    if (const int result = runtime_copy_(to, from, bytes, kind, stream)) {
      fail("cudaMemcpyAsync returned " + std::to_string(result));
    }
  }

  const Options options_;
  const std::shared_ptr<const Driver> driver_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<Completions> completions_;
  CUresult (*const synchronize_)(CUstream);
  RuntimeCopy runtime_copy_ = nullptr;
  Lane to_host_;
  Lane to_device_;
  std::vector<uint64_t> tags_;
};

nlohmann::json run(const Options& options) {
  Bench bench(options);
  nlohmann::json rows = nlohmann::json::array();
  for (uint64_t bytes = kSmallest; bytes <= options.largest; bytes *= 4) {
    for (const Direction direction : {Direction::kToHost, Direction::kToDevice, Direction::kBoth}) {
      const size_t copies = std::clamp<size_t>(options.round_bytes / bytes, 1, kMostCopies);
      for (const size_t streams : {1, 2}) rows.push_back(bench.measure({direction, bytes, copies, streams}));
      rows.push_back(bench.measure({direction, bytes, 1, 1}));
    }
  }
  return {{"gpu", bench.info().name}, {"rows", rows}};
}

}  // namespace
}  // namespace gleaner::device

int main(int argc, char** argv) {
  gleaner::device::Options options;
  gleaner::flags::Program program("gpu_copies", "Compares copies between a GPU and pinned host memory", "");
  program.add_text("--libcuda", options.libcuda, "The library of the CUDA driver").show_default();
  program.add_text("--libcudart", options.libcudart, "The library of CUDA's runtime [default: leave it out]");
  program.add_number("--gpu", options.ordinal, "The CUDA ordinal of the GPU").show_default();
  program.add_number("--rounds", options.rounds, "Measurements of each contender").between(1, 1000).show_default();
  program.add_number("--round-bytes", options.round_bytes, "Bytes that a round copies in each direction")
      .show_default();
  program.add_number("--largest", options.largest, "Bytes of the largest copy; sizes grow fourfold from 64 KiB")
      .between(uint64_t{1} << 16, uint64_t{1} << 30)
      .show_default();
  if (const std::optional<int> status = program.parse(argc, argv)) return *status;
  try {
    std::printf("%s\n", gleaner::device::run(options).dump(1).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_copies: %s\n", error.what());
    return 1;
  }
  return 0;
}
