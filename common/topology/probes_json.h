// Reads probes from JSON that is parsed already. For the sources of this folder.
#pragma once

#include "absl/status/statusor.h"
#include "common/topology/json_fields.h"
#include "common/topology/probes.h"

namespace gleaner::topology {

absl::StatusOr<Probes> read_probes(const Json& root);

}  // namespace gleaner::topology
