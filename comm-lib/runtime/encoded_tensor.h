// Makes the tensor of a plan from a codec of the C ABI.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "gleaner/gleaner.h"

namespace gleaner::runtime {

// Returns a compressed tensor of `elements` elements of fp32. InvalidArgument: a value of `codec` is out of range.
absl::StatusOr<plan::Tensor> encoded_tensor(std::string name, uint64_t elements, const gln_codec& codec,
                                            int32_t priority);

}  // namespace gleaner::runtime
