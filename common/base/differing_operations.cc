#include "common/base/differing_operations.h"

#include "absl/strings/str_cat.h"
#include "common/base/ordinal.h"

namespace gleaner {

absl::Status differing_operations(absl::string_view tensor, std::optional<uint64_t> number, const AskedOperation& one,
                                  const AskedOperation& other) {
  const std::string when = number.has_value() ? absl::StrCat("in its ", ordinal(*number), " push_pull ") : "";
  return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor, "': ", when, one.by, " asks for its ",
                                                 name_of(one.op), ", ", other.by, " for its ", name_of(other.op),
                                                 "; every rank must ask for the same operation"));
}

}  // namespace gleaner
