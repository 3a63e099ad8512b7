// differing_operations() makes the error about ranks that ask for different operations in the same push_pull. Whichever
// member notices it uses these words, since the users of the job read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/bytes.h"

namespace gleaner {

struct AskedOperation {
  std::string by;  // a name for people: "worker 1", "local rank 0"
  ReduceOp op = ReduceOp::kSum;
};

// Returns InvalidArgument: "tensor 'w': in its 4th push_pull worker 0 asks for its average, worker 1 for its sum; every
// rank must ask for the same operation". `number` is the count of earlier push_pulls of the tensor; none: it is not
// known, or the push_pull is the first.
absl::Status differing_operations(absl::string_view tensor, std::optional<uint64_t> number, const AskedOperation& one,
                                  const AskedOperation& other);

}  // namespace gleaner
