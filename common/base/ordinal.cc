#include "common/base/ordinal.h"

#include "absl/strings/str_cat.h"

namespace gleaner {

std::string ordinal(uint64_t earlier) {
  const uint64_t number = earlier + 1, ones = number % 10;
  const bool is_teen = number / 10 % 10 == 1;
  const bool is_regular = is_teen || ones == 0 || ones > 3;
  return absl::StrCat(number, is_regular ? "th" : ones == 1 ? "st" : ones == 2 ? "nd" : "rd");
}

}  // namespace gleaner
