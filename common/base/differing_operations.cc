#include "common/base/differing_operations.h"

#include "absl/strings/str_cat.h"

namespace gleaner {

absl::Status differing_operations(absl::string_view tensor, std::optional<uint64_t> number, const AskedOperation& one,
                                  const AskedOperation& other) {
  const std::string when = number.has_value() ? absl::StrCat("in push_pull ", *number, " (counted from 0) ") : "";
  return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor, "': ", when, one.by, " asks for its ",
                                                 name_of(one.op), ", ", other.by, " for its ", name_of(other.op),
                                                 "; every rank must ask for the same operation"));
}

}  // namespace gleaner
