// The functions of the driver that load and launch kernels. An image only has to look like one: the kernels are those
// of sum_kernels.h, and a function is one by its name.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "tests/doubles/cuda/call.h"
#include "tests/doubles/cuda/sum_kernels.h"

using namespace gleaner::cuda_double;  // NOLINT: the driver's names are global

namespace {

// Begins a fatbin of nvcc (fatbinary.h of the CUDA Toolkit).
constexpr unsigned char kFatbinMagic[] = {0x50, 0xED, 0x55, 0xBA};

struct Module {
  Context* context = nullptr;
  std::vector<Point> launches;  // the last one of each stream
};

struct Function {
  CUmodule module = nullptr;
  const SumKernel* kernel = nullptr;
};

// The Machine's mutex guards the handles, which are never used again.
struct Handles {
  std::map<CUmodule, Module> modules;
  std::map<CUfunction, Function> functions;
  uint64_t last = 0;
};

Handles& handles() {
  static auto* const the_handles = new Handles;
  return *the_handles;
}

struct Touched {
  std::shared_ptr<Allocation> memory;
  Access access;
};

// Returns the address at which the double touches memory that find() knows.
uint64_t touchable(const Machine& m, uint64_t address) {
  const std::shared_ptr<Allocation> memory = m.memory.find(address, 1);
  return reinterpret_cast<uint64_t>(memory->touchable) + (address - memory->range().begin);
}

// A GPU reports later that a kernel has used a wrong address, and fails.
Point submit_failure(Machine& m, const std::shared_ptr<Stream>& stream, CUresult error) {
  return m.submit(stream, {}, {.run = [&m, stream, error](const Clock&) {
                    std::unique_lock<std::mutex> lock(m.mutex());
                    m.fail(*stream->context, error);
                  }});
}

// Replaces the addresses in `arguments` by touchable ones, and adds what the kernel touches. Returns the error of a
// kernel with these arguments.
CUresult translate(const Machine& m, const SumKernel& kernel, gleaner::device::SumArguments& arguments,
                   std::vector<Touched>& touched) {
  const auto replace = [&](uint64_t& address, uint64_t element_bytes, bool is_write) {
    const uint64_t bytes = arguments.elements * element_bytes;
    const std::shared_ptr<Allocation> memory = m.memory.find(address, bytes);
    if (memory == nullptr) return CUDA_ERROR_ILLEGAL_ADDRESS;
    if (address % element_bytes != 0) return CUDA_ERROR_MISALIGNED_ADDRESS;
    // A source that is the result, too, counts as the result.
    if (is_write || address != arguments.result) {
      touched.push_back({memory, {{address, address + bytes}, is_write, memory->kind == Kind::kPinned}});
    }
    return CUDA_SUCCESS;
  };
  if (arguments.elements == 0) return CUDA_SUCCESS;
  for (uint32_t source = 0; source < arguments.count; ++source) {
    const CUresult result = replace(arguments.sources[source], kernel.from_bytes, false);
    if (result != CUDA_SUCCESS) return result;
  }
  if (const CUresult result = replace(arguments.result, kernel.to_bytes, true); result != CUDA_SUCCESS) return result;
  for (uint32_t source = 0; source < arguments.count; ++source)
    arguments.sources[source] = touchable(m, arguments.sources[source]);
  arguments.result = touchable(m, arguments.result);
  return CUDA_SUCCESS;
}

Point submit_sum(Machine& m, const std::shared_ptr<Stream>& stream, const SumKernel& kernel,
                 gleaner::device::SumArguments arguments, unsigned blocks, unsigned threads) {
  std::vector<Touched> touched;
  if (const CUresult error = translate(m, kernel, arguments, touched); error != CUDA_SUCCESS) {
    return submit_failure(m, stream, error);
  }
  std::vector<Access> accesses;
  for (const Touched& one : touched) accesses.push_back(one.access);
  return m.submit(stream, std::move(accesses), {.run = [=](const Clock&) {
                    static_cast<void>(touched);  // keeps the memory
                    run(kernel, arguments, blocks, threads);
                  }});
}

}  // namespace

extern "C" {

GLN_EXPORT CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return call("cuModuleLoadData", [&](Machine& m) {
    Context* current = nullptr;
    if (const CUresult result = get_current(m, &current); result != CUDA_SUCCESS) return result;
    if (std::memcmp(image, kFatbinMagic, sizeof(kFatbinMagic)) != 0) return CUDA_ERROR_INVALID_IMAGE;
    *module = reinterpret_cast<CUmodule>(++handles().last);
    handles().modules[*module] = {current, {}};
    return CUDA_SUCCESS;
  });
}

GLN_EXPORT CUresult cuModuleUnload(CUmodule module) {
  return call("cuModuleUnload", [&](Machine& m) {
    const auto found = handles().modules.find(module);
    if (found == handles().modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    const bool is_running = found->second.context->error == CUDA_SUCCESS &&
                            !std::all_of(found->second.launches.begin(), found->second.launches.end(),
                                         [](const Point& point) { return point.is_reached(); });
    if (is_running) m.accesses.find("unloaded early: a kernel of an unloaded module has not ended");
    handles().modules.erase(found);
    return CUDA_SUCCESS;
  });
}

GLN_EXPORT CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return call("cuModuleGetFunction", [&](Machine&) {
    if (!handles().modules.contains(module)) return CUDA_ERROR_INVALID_HANDLE;
    const SumKernel* kernel = find_sum_kernel(name);
    if (kernel == nullptr) return CUDA_ERROR_NOT_FOUND;
    *function = reinterpret_cast<CUfunction>(++handles().last);
    handles().functions[*function] = {module, kernel};
    return CUDA_SUCCESS;
  });
}

GLN_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z,
                                   unsigned threads_x, unsigned threads_y, unsigned threads_z, unsigned,
                                   CUstream handle, void** parameters, void**) {
  return call("cuLaunchKernel", [&](Machine& m) {
    std::shared_ptr<Stream> stream;
    if (const CUresult result = get_stream(m, handle, &stream); result != CUDA_SUCCESS) return result;
    const auto found = handles().functions.find(function);
    if (found == handles().functions.end()) return CUDA_ERROR_INVALID_HANDLE;
    const auto module = handles().modules.find(found->second.module);
    if (module == handles().modules.end()) return CUDA_ERROR_INVALID_HANDLE;
    Context* current = nullptr;
    get_current(m, &current);
    if (module->second.context != current || stream->context != current) return CUDA_ERROR_INVALID_HANDLE;
    constexpr unsigned kMostThreads = 1024;
    const unsigned threads = threads_x * threads_y * threads_z;
    if (blocks_x == 0 || blocks_y != 1 || blocks_z != 1 || threads == 0 || threads > kMostThreads) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto& arguments = *static_cast<const gleaner::device::SumArguments*>(parameters[0]);
    const Point end = submit_sum(m, stream, *found->second.kernel, arguments, blocks_x, threads);
    std::vector<Point>& launches = module->second.launches;
    std::erase_if(launches, [&](const Point& launch) { return launch.stream == end.stream; });
    launches.push_back(end);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
