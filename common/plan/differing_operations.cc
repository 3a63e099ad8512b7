#include "common/plan/differing_operations.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/differing_operations.h"

namespace gleaner::plan {

absl::Status differing_operations(const Plan& plan, uint32_t tensor, uint64_t step, const WorkersOperation& one,
                                  const WorkersOperation& other) {
  if (other.worker < one.worker) return differing_operations(plan, tensor, step, other, one);
  const Tensor& asked = plan.tensors[tensor];
  const std::optional<uint64_t> number = asked.schedule_from == 0 ? std::optional(step) : std::nullopt;
  return gleaner::differing_operations(asked.name, number, {absl::StrCat("worker ", one.worker), one.op},
                                       {absl::StrCat("worker ", other.worker), other.op});
}

}  // namespace gleaner::plan
