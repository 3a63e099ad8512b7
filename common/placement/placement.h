// Functions that decide which machines may run summers, and how good each machine is. Pure, over the agents' profiles.
//
// The operator asks how many summers there could be and with what bandwidth. The scheduler extender asks which of
// kube-scheduler's nodes are suitable, and for their scores. docs/scheduler.md has the rules and formulas.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/api/node_profile.h"
#include "common/placement/node_labels.h"

namespace gleaner::placement {

// The resources that are promised to the summers bound to a machine.
struct Commitment {
  uint32_t summers = 0;    // their number, of all jobs
  double summer_cpus = 0;  // the sum of their requests, which the profile's use may not show yet
  double summer_bits_per_second = 0;
};

struct Machine {
  std::string name;
  absl::flat_hash_map<std::string, std::string> labels;
  bool schedulable = true;  // Ready, not cordoned, and not tainted unless the Fleet ignores taints
  std::shared_ptr<const api::NodeProfile> profile;  // null: no agent has reported on the machine
  Commitment commitment;
};

// The CPUs that placement reserves for a summer, even if the summer requests fewer. A request also sets the weight of a
// summer's container against other containers on the machine, so summers request very little.
constexpr double kLeastCpus = 0.1;
constexpr double needed_cpus(double requested) { return std::max(kLeastCpus, requested); }

struct SummerRequest {
  std::string job;  // "namespace/name"
  double cpus = kLeastCpus;
  uint64_t memory_bytes = 0;
  double min_bits_per_second = 0;  // a machine with less spare bandwidth is not suitable
  double max_bits_per_second = 0;  // 0: no limit
  // Nodes of this job's workers. Their links limit the step, and a summer there would share them.
  absl::flat_hash_set<std::string> worker_nodes;
  absl::flat_hash_set<std::string> summer_nodes;  // nodes of this job's summers: a machine takes one summer of a job
};

// A rule that a machine breaks, in words. Both texts are empty if it breaks none.
struct Refusal {
  std::string reason;   // has no figure of the machine, so that it can be counted: "node(s) with spare CPU below 0.5"
  std::string why_not;  // about this machine: "spare CPU 0.2 is below 0.5"
};

struct Verdict {
  bool fits = false;
  Refusal refusal;
  double bits_per_second = 0;  // bandwidth that a summer could use each way
  uint32_t score = 0;          // 0 to 100
};

// Placement ignores profiles older than this.
inline constexpr absl::Duration kProfileLife = absl::Minutes(2);
// In bits per second. No single link is faster: a profile that claims more is wrong.
inline constexpr double kFastestLink = 1e13;

// Returns whether a summer may run on this machine. `refusal` names the first of these rules that fails:
// - The machine is schedulable, and runs no worker and no summer of this job.
// - An agent reported within kProfileLife of `now`, the reader's clock. A report from more than kProfileLife in the
//   future is refused, too.
// - The profile is Ready, its speed is known, and it does not contradict itself.
// - Spare CPU, less the requests of summers that are bound to the machine, is at least the request. The profile's use
//   may include these requests already; counting them twice favours the machine's owner.
// - Spare memory is at least the request.
// - Spare bandwidth, less the bandwidth promised to summers that are bound to the machine, is above 0 and at least
//   min_bits_per_second. Spare bandwidth does not include the bandwidth that summers use. The result is capped at
//   max_bits_per_second.
//
// The score has three parts. Up to 60 for bandwidth b: 60 b / max_bits_per_second, or without a maximum 60 b / (b + 25
// Gbit/s). Up to 25 for spare CPU, in full from 4 cores. 15 / (1 + number of summers that are bound there).
Verdict judge_summer(const Machine& machine, const SummerRequest& request, absl::Time now);

// Returns the suitable machines, best first: by score, then by bandwidth, then by name.
struct Candidate {
  std::string node;
  double bits_per_second = 0;
};
std::vector<Candidate> summer_candidates(const std::vector<const Machine*>& machines, const SummerRequest& request,
                                         absl::Time now);

// Returns how near a worker's node would be to the nodes where other workers of its job are placed, 0 to 100: the mean
// nearness() by the labels in `levels` (node_labels.h), times 100. 0 if no worker is placed or no node has the labels.
uint32_t score_worker(const Machine& machine, const std::vector<const Machine*>& placed);
uint32_t score_worker(const Machine& machine, const std::vector<const Machine*>& placed, const LabelLevels& levels);

}  // namespace gleaner::placement
