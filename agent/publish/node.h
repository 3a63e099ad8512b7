// NodeState has the fields of its own Node object that the agent reads.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace gleaner::publish {

struct NodeState {
  std::string name, uid;
  std::string bandwidth_label;  // gleaner.dev/bandwidth as written; empty: none
  double allocatable_cpus = 0;
  double allocatable_memory_bytes = 0;
  double summers_capacity = -1;  // capacity of gleaner.dev/summer; -1: not advertised
};

absl::StatusOr<NodeState> parse_node(const nlohmann::json& object);

}  // namespace gleaner::publish
