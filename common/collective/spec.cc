#include "common/collective/spec.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::collective {

std::string name_of(const Spec& spec) {
  if (!spec.group_sizes.empty()) return absl::StrCat(spec.algorithm, " ", absl::StrJoin(spec.group_sizes, "+"));
  if (spec.factors.empty()) return spec.algorithm;
  return absl::StrCat(spec.algorithm, " ", absl::StrJoin(spec.factors, ","));
}

}  // namespace gleaner::collective
