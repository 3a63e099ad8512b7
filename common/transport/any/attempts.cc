#include "common/transport/any/attempts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::transport::any {

absl::Duration Attempts::timeout(absl::Duration now) const {
  return (deadline_ - now) / static_cast<double>(order_.size() - tried_ + 1);
}

bool Attempts::has_failed(Kind kind) const {
  return std::any_of(failures_.begin(), failures_.end(), [kind](const Failure& one) { return one.kind == kind; });
}

absl::Status Attempts::all_failed() const {
  if (failures_.size() == 1) return failures_[0].why;
  return absl::Status(failures_.back().why.code(),
                      absl::StrJoin(failures_, "; ", [](std::string* out, const Failure& one) {
                        absl::StrAppend(out, name_of(one.kind), ": ", one.why.message());
                      }));
}

}  // namespace gleaner::transport::any
