// The output of `gleaner plan --collective` for operations that have no plan of partitions.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/plan/model.h"

namespace gleaner::cli {

struct CollectiveFlags {
  std::string name = "all-reduce";
  uint64_t replicas = 0;     // hsdp
  std::string gather_bytes;  // fsdp; empty: as many as are reduced
};

// Returns the bound of the operation `flags.name`, which is not all-reduce, as `output` says: "json", or text for
// people. `bytes`: of one worker's vector. InvalidArgument names the flag that is missing, does not fit the operation
// or has a wrong value.
absl::StatusOr<std::string> collective_bound(const CollectiveFlags& flags, const plan::Fleet& fleet, double bytes,
                                             const std::string& output);

}  // namespace gleaner::cli
