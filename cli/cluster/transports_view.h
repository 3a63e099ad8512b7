// By which transport members of a job reach each other. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/types/reduction_plan.h"

namespace gleaner::cli {

// Pairs that go by one transport: those that connect, a worker with every other worker and every summer.
struct TransportPairs {
  std::string transport;           // "shm"; empty: they have none in common
  size_t count = 0;                // pairs
  std::vector<std::string> first;  // some of them: "worker-0 – summer-1"; "→" where only this direction goes so
};

// By number of pairs, the least first. Empty: the plan does not tell, being of an older version.
std::vector<TransportPairs> transports_of(const std::vector<types::PlanMember>& members);

// "Transports shm: worker-0 – summer-1; tcp: the rest"
std::string transports_text(const std::vector<TransportPairs>& pairs);
nlohmann::json transports_json(const std::vector<TransportPairs>& pairs);

}  // namespace gleaner::cli
