// Request is one push_pull of a tensor by this rank's program.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "comm-lib/device/access.h"
#include "common/base/bytes.h"

namespace gleaner::runtime {

struct Request {
  uint64_t handle = 0;
  uint32_t tensor = 0;  // index in the plan
  uint64_t step = 0;    // number of requests of this tensor that were started before
  ReduceOp op = ReduceOp::kSum;
  MutableBytes input;  // unchanged until the request has ended
  MutableBytes output;
  device::Access access;
  absl::Duration requested_at;  // when the program called push_pull()
};

}  // namespace gleaner::runtime
