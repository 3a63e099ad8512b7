// Coverage tells how far an agent is with the peers that it measures.
#pragma once

#include <cstddef>

#include "absl/time/time.h"

namespace gleaner::probe {

struct Coverage {
  size_t peers = 0;
  size_t missing = 0;     // peers without an entry
  absl::Duration oldest;  // age of the oldest entry of the others
};

}  // namespace gleaner::probe
