#include "comm-lib/device/kernels/cuda_kernels.h"

#include <poll.h>

#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "comm-lib/device/completions.h"
#include "comm-lib/device/cuda_context.h"
#include "comm-lib/device/cuda_device.h"
#include "comm-lib/device/kernels/sum_launch.h"
#include "common/base/status_macros.h"

namespace gleaner::device {
namespace {

constexpr int kCheckMilliseconds = 100;

using Functions = std::array<CUfunction, std::size(kSumKernels)>;

class CudaKernels final : public Kernels {
 public:
  explicit CudaKernels(std::shared_ptr<const CudaContext> context) : context_(std::move(context)) {}
  ~CudaKernels() override {
    const CudaContext::Current current(*context_);
    if (module_ != nullptr && current.status().ok()) context_->api().cuModuleUnload(module_);
  }

  absl::Status open(ConstBytes image) {
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    GLN_RETURN_IF_ERROR(
        context_->check(context_->api().cuModuleLoadData(&module_, image.data()), "load kernels into the GPU"));
    for (size_t kernel = 0; kernel < functions_.size(); ++kernel) {
      const char* const name = kSumKernels[kernel].name;
      const CUresult result = context_->api().cuModuleGetFunction(&functions_[kernel], module_, name);
      if (result != CUDA_SUCCESS) return context_->check(result, absl::StrCat("find the kernel ", name));
    }
    return absl::OkStatus();
  }

  absl::Status warm_up(Stream& stream) {
    SumArguments nothing{};
    for (size_t kernel = 0; kernel < functions_.size(); ++kernel) {
      GLN_RETURN_IF_ERROR(launch(stream, kernel, nothing));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status launch(Stream& stream, size_t kernel, SumArguments& arguments) override {
    const std::optional<CUstream> handle = cuda_stream_of(stream, context_->place());
    if (!handle.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected a stream of ", name_of(context_->place()), "; this one is of another device"));
    }
    const CudaContext::Current current(*context_);
    GLN_RETURN_IF_ERROR(current.status());
    void* parameters[] = {&arguments};
    return context_->check(context_->api().cuLaunchKernel(functions_[kernel], blocks_of(arguments), 1, 1,
                                                          kThreadsPerBlock, 1, 1, 0, *handle, parameters, nullptr),
                           "launch a kernel that sums");
  }

  const std::shared_ptr<const CudaContext> context_;
  CUmodule module_ = nullptr;
  Functions functions_{};
};

// Waits until all work of a stream has ended.
absl::Status finish(Stream& stream) {
  GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Completions> completions, Completions::create());
  GLN_RETURN_IF_ERROR(stream.notify(*completions, 0));
  std::vector<uint64_t> tags;
  for (completions->take(tags); tags.empty(); completions->take(tags)) {
    // A GPU that fails does not tell it (Stream::notify).
    GLN_RETURN_IF_ERROR(stream.check());
    pollfd readable{completions->descriptor(), POLLIN, 0};
    poll(&readable, 1, kCheckMilliseconds);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Kernels>> load_cuda_kernels(Device& device, ConstBytes image) {
  if (image.empty()) {
    return absl::UnimplementedError(
        "this build of Gleaner has no GPU kernels, since CMake found no nvcc; install the CUDA Toolkit 12 or later (or "
        "PyPI's nvidia-cuda-nvcc, nvidia-cuda-runtime and nvidia-cuda-cccl) and configure the build with "
        "-DGLEANER_NVCC=/path/to/nvcc");
  }
  auto kernels = std::make_unique<CudaKernels>(cuda_context_of(device));
  GLN_RETURN_IF_ERROR(kernels->open(image));
  GLN_ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, device.create_stream(Priority::kNormal));
  GLN_RETURN_IF_ERROR(kernels->warm_up(*stream));
  GLN_RETURN_IF_ERROR(finish(*stream));
  return kernels;
}

}  // namespace gleaner::device
