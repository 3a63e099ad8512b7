// Broadcasts a value from one rank to all ranks, by a push_pull.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "comm-lib/runtime/rank.h"
#include "common/base/bytes.h"

namespace gleaner::runtime {

// Copies `data` of rank `root` to `data` of all ranks. All ranks call it, with the same name, size and root.
// InvalidArgument: `root` is not a rank, or ranks give different roots. Other errors are those of the push_pull.
absl::Status broadcast(Rank& rank, const std::string& name, MutableBytes data, uint32_t root);

}  // namespace gleaner::runtime
