#include "coordinator/planning/advice.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/plan/broadcast_name.h"

namespace gleaner::coordinator {
namespace {

bool is_number(absl::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == absl::string_view::npos;
}

// Returns whether this is the name of a bucket of ddp_hook(): "ddp.INDEX.ELEMENTS".
bool is_bucket(const plan::Tensor& tensor) {
  absl::string_view name = tensor.name;
  return absl::ConsumePrefix(&name, "ddp.") && absl::ConsumeSuffix(&name, absl::StrCat(".", tensor.elements)) &&
         is_number(name);
}

}  // namespace

std::string advice_about(const plan::Tensor& tensor) {
  if (is_bucket(tensor)) {
    return "every rank must train the same model, with model.register_comm_hook(None, gleaner.torch.ddp_hook)";
  }
  if (absl::StrContains(tensor.name, ".gradient.") || optimizer_of_roll(tensor).has_value()) {
    return "every rank must wrap the optimizers of the same models, in the same order";
  }
  if (plan::is_broadcast(tensor.name)) return "every rank must make the same broadcasts, in the same order";
  return "every rank must begin the same push_pulls";
}

std::optional<absl::string_view> optimizer_of_roll(const plan::Tensor& tensor) {
  absl::string_view optimizer = tensor.name;
  if (tensor.type != DataType::kInt32 || !absl::ConsumeSuffix(&optimizer, ".roll")) return std::nullopt;
  absl::string_view number = optimizer;
  if (!absl::ConsumePrefix(&number, "optimizer.") || !is_number(number)) return std::nullopt;
  return optimizer;
}

uint64_t parameters_of_roll(uint64_t elements, uint32_t ranks) {
  const uint64_t of_ranks = kRollElementsOfRank * uint64_t{ranks};
  return elements > of_ranks ? elements - of_ranks : 0;
}

}  // namespace gleaner::coordinator
