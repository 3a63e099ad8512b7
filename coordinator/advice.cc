#include "coordinator/advice.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gleaner::coordinator {

std::string advice_about(const plan::Tensor& tensor) {
  if (absl::EndsWith(tensor.name, absl::StrCat(".", tensor.elements))) {  // a bucket of ddp_hook()
    return "every rank must train the same model, with model.register_comm_hook(None, gleaner.torch.ddp_hook)";
  }
  if (absl::StrContains(tensor.name, ".gradient.") || optimizer_of_roll(tensor.name).has_value()) {
    return "every rank must wrap the optimizers of the same models, in the same order";
  }
  if (absl::StartsWith(tensor.name, "broadcast/")) return "every rank must make the same broadcasts, in the same order";
  return "every rank must begin the same push_pulls";
}

std::optional<absl::string_view> optimizer_of_roll(absl::string_view name) {
  return absl::ConsumeSuffix(&name, ".roll") ? std::optional(name) : std::nullopt;
}

uint64_t parameters_of_roll(uint64_t elements, uint32_t ranks) {
  return elements > 2 * uint64_t{ranks} ? elements - 2 * uint64_t{ranks} : 0;
}

}  // namespace gleaner::coordinator
