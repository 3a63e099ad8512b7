#include "comm-lib/device/kernels/host_kernels.h"

#include <array>

#include "comm-lib/device/kernels/sum_launch.h"
#include "common/base/status_macros.h"
#include "common/kernels/kernels.h"

namespace gleaner::device {
namespace {

class HostKernels final : public Kernels {
 public:
  explicit HostKernels(const kernels::Kernels& kernels) : kernels_(kernels) {}

 private:
  absl::Status launch(Stream&, size_t kernel, SumArguments& arguments) override {
    std::array<const std::byte*, kMostSources> sources;
    for (uint32_t source = 0; source < arguments.count; ++source) {
      sources[source] = reinterpret_cast<const std::byte*>(arguments.sources[source]);
    }
    kernels_.sum(kSumKernels[kernel].from, kSumKernels[kernel].to, std::span(sources).first(arguments.count),
                 reinterpret_cast<std::byte*>(arguments.result), arguments.elements, arguments.divisor);
    return absl::OkStatus();
  }

  const kernels::Kernels kernels_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Kernels>> load_host_kernels() {
  GLN_ASSIGN_OR_RETURN(const kernels::Kernels kernels, kernels::Kernels::choose(""));
  return std::make_unique<HostKernels>(kernels);
}

}  // namespace gleaner::device
