#include "tests/unit/device/caller.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace gleaner::device {
namespace {

template <typename Function>
void find(const std::string& library, const char* name, Function& function) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  function = handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle, name));
  if (function == nullptr) ADD_FAILURE() << library << " lacks " << name;
}

void must(CUresult result) { ASSERT_EQ(result, CUDA_SUCCESS); }

}  // namespace

Double::Double() {
  find(CUDA_DOUBLE, "gln_double_reset", reset);
  find(CUDA_DOUBLE, "gln_double_fail_next", fail_next);
  find(CUDA_DOUBLE, "gln_double_hold", hold);
  find(CUDA_DOUBLE, "gln_double_fail_kernel", fail_kernel);
  find(CUDA_DOUBLE, "gln_double_capture", capture);
  find(CUDA_DOUBLE, "gln_double_count_device_memory", count_device_memory);
  find(CUDA_DOUBLE, "gln_double_take_findings", take_findings_);
}

std::string Double::take_findings() const {
  std::array<char, 4096> text;
  take_findings_(text.data(), text.size());
  return text.data();
}

Caller::Caller(std::shared_ptr<const Driver> driver, int ordinal, const std::string& library)
    : driver_(std::move(driver)) {
  find(library, "cuCtxGetCurrent", get_current_);
  find(library, "cuCtxSetCurrent", set_current_);
  find(library, "cuMemAlloc_v2", allocate_);
  find(library, "cuMemAllocManaged", allocate_managed_);
  find(library, "cuMemFree_v2", free_);
  find(library, "cuStreamSynchronize", synchronize_);
  must(driver_->api().cuDeviceGet(&device_, ordinal));
  must(driver_->api().cuDevicePrimaryCtxRetain(&context_, device_));
  must(driver_->api().cuCtxPushCurrent(context_));
}

Caller::~Caller() {
  make_current();
  synchronize_(nullptr);
  for (CUstream stream : streams_) {
    synchronize_(stream);
    driver_->api().cuStreamDestroy(stream);
  }
  for (CUdeviceptr address : memory_) free_(address);
  for (void* address : pinned_) driver_->api().cuMemFreeHost(address);
  CUcontext popped = nullptr;
  driver_->api().cuCtxPopCurrent(&popped);
  driver_->api().cuDevicePrimaryCtxRelease(device_);
}

CUcontext Caller::current_context() const {
  CUcontext current = nullptr;
  must(get_current_(&current));
  return current;
}

void Caller::make_current() { must(set_current_(context_)); }

CUdeviceptr Caller::allocate(size_t bytes) {
  CUdeviceptr address = 0;
  must(allocate_(&address, bytes));
  return memory_.emplace_back(address);
}

CUdeviceptr Caller::allocate_managed(size_t bytes) {
  constexpr unsigned kAttachGlobal = 1;  // CU_MEM_ATTACH_GLOBAL
  CUdeviceptr address = 0;
  must(allocate_managed_(&address, bytes, kAttachGlobal));
  return memory_.emplace_back(address);
}

CUstream Caller::create_stream() {
  CUstream stream = nullptr;
  must(driver_->api().cuStreamCreateWithPriority(&stream, 0, 0));
  return streams_.emplace_back(stream);
}

void Caller::destroy(CUstream stream) {
  std::erase(streams_, stream);
  must(driver_->api().cuStreamDestroy(stream));
}

MutableBytes Caller::pin(size_t bytes) {
  void* memory = nullptr;
  must(driver_->api().cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE));
  pinned_.push_back(memory);
  return {static_cast<std::byte*>(memory), bytes};
}

void Caller::write(CUstream stream, CUdeviceptr to, size_t bytes, int value) {
  write(stream, to, std::vector<std::byte>(bytes, std::byte(value)));
}

void Caller::write(CUstream stream, CUdeviceptr to, ConstBytes bytes) {
  const MutableBytes source = pin(bytes.size());
  std::ranges::copy(bytes, source.begin());
  must(driver_->api().cuMemcpyHtoDAsync(to, source.data(), bytes.size(), stream));
}

ConstBytes Caller::read(CUstream stream, CUdeviceptr from, size_t bytes) {
  const MutableBytes to = pin(bytes);
  must(driver_->api().cuMemcpyDtoHAsync(to.data(), from, bytes, stream));
  return to;
}

void Caller::synchronize(CUstream stream) { must(synchronize_(stream)); }

void Caller::synchronize_failed(CUstream stream) { EXPECT_NE(synchronize_(stream), CUDA_SUCCESS); }

std::vector<uint64_t> await(Completions& completions, size_t count) {
  std::vector<uint64_t> tags;
  while (tags.size() < count) {
    pollfd readable{completions.descriptor(), POLLIN, 0};
    if (poll(&readable, 1, 60000) != 1) {
      ADD_FAILURE() << "expected " << count << " completions, and " << tags.size() << " came within a minute";
      break;
    }
    completions.take(tags);
  }
  return tags;
}

bool all_are(ConstBytes bytes, int value) {
  return std::all_of(bytes.begin(), bytes.end(), [&](std::byte byte) { return byte == std::byte(value); });
}

}  // namespace gleaner::device
