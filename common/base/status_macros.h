// Macros that return early from a function on an error status. No other macros of the project change control flow.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define GLN_RETURN_IF_ERROR(expression)                                                \
  do {                                                                                 \
    if (::absl::Status gln_status = (expression); !gln_status.ok()) return gln_status; \
  } while (false)

#define GLN_CONCAT_INNER(a, b) a##b
#define GLN_CONCAT(a, b) GLN_CONCAT_INNER(a, b)
#define GLN_ASSIGN_OR_RETURN(target, expression) \
  GLN_ASSIGN_OR_RETURN_INNER(GLN_CONCAT(gln_or_, __LINE__), target, expression)
#define GLN_ASSIGN_OR_RETURN_INNER(name, target, expression) \
  auto name = (expression);                                  \
  if (!name.ok()) return std::move(name).status();           \
  target = *std::move(name)
