// Shows which transport each pair of members of a job uses. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/api/reduction_plan.h"

namespace gleaner::cli {

// The pairs of members that use one transport. Only members that connect form a pair: a worker and another worker, or a
// worker and a summer.
struct TransportPairs {
  std::string transport;           // "shm"; empty: the members share no transport
  size_t count = 0;                // number of pairs
  std::vector<std::string> first;  // names of the first pairs: "worker-0 – summer-1"; "→": only in this direction
};

// Returns the transports sorted by their number of pairs, the fewest first. Returns nothing if no member states its
// transports (the plan was written by an older version).
std::vector<TransportPairs> transports_of(const std::vector<api::PlanMember>& members);

// Returns "Transports shm: worker-0 – summer-1; tcp: the rest".
std::string transports_text(const std::vector<TransportPairs>& pairs);
nlohmann::json transports_json(const std::vector<TransportPairs>& pairs);

}  // namespace gleaner::cli
