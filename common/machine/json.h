// Reads and writes machines as JSON. docs/topology.md describes the file:
//
//   {"switches": [{"name": "plx0", "numa": 0, "bandwidth": "105Gbit"}],
//    "gpus": [{"name": "gpu0", "switch": "plx0"}, {"name": "gpu1", "numa": 1, "bandwidth": 105e9}],
//    "nics": [{"name": "mlx5_0", "switch": "plx0", "bandwidth": "100Gbit", "rdma": true}],
//    "nvlink": [{"gpus": ["gpu0", "gpu1"], "bandwidth": "1.2Tbit"}],
//    "across_switches": {"bandwidth": "80Gbit"}, "interconnect": {...}, "memory": {...}}
//
// Only "gpus" is required. A bandwidth that is left out is assumed, and an object with "assumed": true says that its
// bandwidth is. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/machine/machine.h"

namespace gleaner::machine {

// Returns the machine of a file, or that of a NodeProfile (profile.h). Errors: InvalidArgument names the field that is
// wrong; those of check().
absl::StatusOr<Machine> parse_machine(absl::string_view text);

// Returns the file's object, of which parse_machine() makes an equal machine.
nlohmann::json to_json(const Machine& machine);

}  // namespace gleaner::machine
