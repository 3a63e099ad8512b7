// Advice about tensors that ranks do not declare alike, by the names that the Python package gives to tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/plan/plan.h"

namespace gleaner::coordinator {

// Returns what every rank has to do so that it declares this tensor, as the end of a sentence: "every rank must ...".
std::string advice_about(const plan::Tensor& tensor);

// Returns the prefix of the tensors of an optimizer ("optimizer.0") if the tensor is its roll call
// (comm-lib/python/gleaner/torch/roll_call.py). The prefix refers to the tensor's name.
std::optional<absl::string_view> optimizer_of_roll(const plan::Tensor& tensor);
// A roll call has an element for each parameter, and this number of elements for each rank.
inline constexpr uint64_t kRollElementsOfRank = 5;
// Returns the number of parameters that an optimizer's roll call tells of.
uint64_t parameters_of_roll(uint64_t elements, uint32_t ranks);

}  // namespace gleaner::coordinator
