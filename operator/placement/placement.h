// Where summers go: pure functions over what the agents say of the machines. The operator asks how many summers there
// could be and with what bandwidth; the scheduler extender asks which of these nodes will do, and how good each is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "operator/types/node_profile.h"

namespace gleaner::placement {

// What runs on a machine already on our account, by the pods bound to it.
struct Commitment {
  uint32_t summers = 0;    // of any job
  double summer_cpus = 0;  // their requests, not yet visible in the profile's use when they are young
  double summer_bits_per_second = 0;
};

struct Machine {
  std::string name;
  absl::flat_hash_map<std::string, std::string> labels;
  bool schedulable = true;                            // Ready, not cordoned
  std::shared_ptr<const types::NodeProfile> profile;  // null: no agent has reported
  Commitment commitment;
};

struct SummerRequest {
  std::string job;    // "namespace/name"
  double cpus = 0.1;  // the container's request
  uint64_t memory_bytes = 0;
  double min_bits_per_second = 0;         // less than this helps nobody
  double max_bits_per_second = 0;         // 0: no limit
  std::vector<std::string> worker_nodes;  // of this job: their links are its bottleneck, a summer there shares them
  std::vector<std::string> summer_nodes;  // of this job: one summer of a job per machine
};

struct Verdict {
  bool fits = false;
  std::string why_not;         // for people: "spare bandwidth 0.2 Gbit/s is below 1 Gbit/s"
  double bits_per_second = 0;  // what a summer could use each way
  uint32_t score = 0;          // 0 ... 100
};

// `now` decides which profiles are too old to be believed (older than 2 minutes: not fit).
Verdict judge_summer(const Machine& machine, const SummerRequest& request, absl::Time now);

// Fit machines, best first.
struct Candidate {
  std::string node;
  double bits_per_second = 0;
};
std::vector<Candidate> summer_candidates(const std::vector<const Machine*>& machines, const SummerRequest& request,
                                         absl::Time now);

// How near a worker's node would be to those of the same job that are placed already, 0 ... 100, by topology labels.
uint32_t score_worker(const Machine& machine, const std::vector<const Machine*>& placed);

}  // namespace gleaner::placement
