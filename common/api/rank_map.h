// RankMap says which worker of an attempt has which ranks, and why. The operator makes it once the workers' machines
// are known, and keeps it in the status of the TrainingJob, so that all operators give an attempt the same ranks. The
// ReductionPlan shows it.
//
// A worker has an *index*, the number in its pod's name, and a *number*, its place in the order of ranks: local rank l
// of worker number i has rank i * localRanks + l.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gleaner::api {

class Fields;

// How a job asks for its ranks. Topology: workers whose machines are near each other get consecutive ranks; Identity:
// worker i has number i.
enum class RankOrder { kTopology, kIdentity };
absl::string_view name_of(RankOrder order);  // "Topology", as in the schema

// Workers whose machines share a group of the cluster's Topology, and no smaller group.
struct RankMapGroup {
  std::string name;                   // of the group in the Topology; empty: machines in none of its groups
  std::vector<uint32_t> workers;      // their numbers, ascending
  double uplink_bits_per_second = 0;  // each way; 0: unknown, so the uplink is taken to carry all that machines send
  bool operator==(const RankMapGroup&) const = default;
};

// The modelled times of a ring all-reduce of one large partition.
struct RingTimes {
  double identity_seconds = 0;  // if worker i had number i
  double seconds = 0;           // with the rank map
  bool operator==(const RingTimes&) const = default;
};

struct RankMap {
  uint32_t attempt = 0;
  RankOrder order = RankOrder::kIdentity;  // that of `workers`
  std::vector<uint32_t> workers;           // the index of each worker, by its number; empty: worker i has number i
  std::string message;                     // why, in one sentence
  std::vector<RankMapGroup> groups;        // in the order of ranks; empty: nothing tells the machines apart
  std::optional<RingTimes> ring;           // none: not modelled
  bool operator==(const RankMap&) const = default;

  // Returns the index of the worker with this number.
  uint32_t index_of(uint32_t number) const { return workers.empty() ? number : workers[number]; }
};

// Reads a field with the name of a RankOrder.
void read_rank_order(const Fields& fields, absl::string_view name, RankOrder& order);
// Reads the object of a RankMap, if it is present.
void read_rank_map(const Fields& fields, std::optional<RankMap>& map);
nlohmann::json to_json(const RankMap& map);

}  // namespace gleaner::api
