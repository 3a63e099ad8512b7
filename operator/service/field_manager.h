// The operator's name as the owner of fields in server-side apply.
#pragma once

#include <string>
#include <utility>

#include "common/kube/client.h"

namespace gleaner::operation {

inline constexpr char kFieldManager[] = "gleaner-operator";

inline kube::ApplyOptions apply_options(std::string subresource = "") {
  kube::ApplyOptions options;
  options.field_manager = kFieldManager;
  options.subresource = std::move(subresource);
  return options;
}

}  // namespace gleaner::operation
