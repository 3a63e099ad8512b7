// Where summers go: pure functions over what the agents say of the machines. The operator asks how many summers there
// could be and with what bandwidth; the scheduler extender asks which of these nodes will do, and how good each is.
// docs/scheduler.md has the rules and formulas in words.
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

// What a summer needs of the processors, whatever it asks for: requests make its weight, so it asks for as little as
// can be.
constexpr double kLeastCpus = 0.1;
constexpr double needed_cpus(double requested) { return std::max(kLeastCpus, requested); }

struct SummerRequest {
  std::string job;  // "namespace/name"
  double cpus = kLeastCpus;
  uint64_t memory_bytes = 0;
  double min_bits_per_second = 0;  // less than this helps nobody
  double max_bits_per_second = 0;  // 0: no limit
  // Nodes of this job's workers: their links are its bottleneck, and a summer there would share them.
  absl::flat_hash_set<std::string> worker_nodes;
  absl::flat_hash_set<std::string> summer_nodes;  // of this job: one summer of a job per machine
};

struct Verdict {
  bool fits = false;
  std::string why_not;         // for people: "spare bandwidth 0.2 Gbit/s is below 1 Gbit/s"
  double bits_per_second = 0;  // what a summer could use each way
  uint32_t score = 0;          // 0 ... 100
};

// A profile older than this says nothing about now.
inline constexpr absl::Duration kProfileLife = absl::Minutes(2);
// No single link is faster: a profile that says so is wrong.
inline constexpr double kFastestLink = 1e13;

// Whether a summer may run there: every reason against it is a rule of its own, and the first that applies is named.
//   schedulable; no worker and no summer of this job there; an agent reported within kProfileLife; the profile is
//   Ready, its speed is known, and it doesn't contradict itself; spare CPU less the requests of summers bound there >=
//   the request (a request may count twice once it is used: that errs in favour of the machine's owner); spare memory
//   >= the request; bandwidth = spare - what is promised to summers bound there (spare leaves their use out), at most
//   `max_bits_per_second`, >= the least.
// Score: 60 for bandwidth: its part of max_bits_per_second; without a maximum b / (b + 25 Gbit/s). 25 for spare CPU, in
// full from 4 cores. 15 / (1 + summers already there).
// `now` is the reader's clock; an agent whose clock is kProfileLife ahead is not believed either.
Verdict judge_summer(const Machine& machine, const SummerRequest& request, absl::Time now);

// Fit machines, best first: by score, then bandwidth, then name.
struct Candidate {
  std::string node;
  double bits_per_second = 0;
};
std::vector<Candidate> summer_candidates(const std::vector<const Machine*>& machines, const SummerRequest& request,
                                         absl::Time now);

// How near a worker's node would be to those of the same job that are placed already, 0 ... 100: the mean nearness, in
// hundredths, by the labels of `topology` (operator/placement/topology.h). 0 when none is placed or nothing is
// labelled.
uint32_t score_worker(const Machine& machine, const std::vector<const Machine*>& placed);
uint32_t score_worker(const Machine& machine, const std::vector<const Machine*>& placed,
                      const std::vector<std::string>& topology);

}  // namespace gleaner::placement
