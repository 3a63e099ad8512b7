// Explains why a step of a plan takes as long as it does: how many bytes each machine moves, which machine is the
// slowest, and how much one more summer would gain. Pure; the model is that of model.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/copies.h"
#include "common/plan/partitioner.h"
#include "common/plan/plan.h"

namespace gleaner::plan {

struct MachineLoad {
  std::string name;  // "worker/0", for example
  double bits_per_second = 0;
  uint64_t owned_bytes = 0;
  double share = 0;          // owned_bytes as a fraction of the stream
  double traffic_bytes = 0;  // per step, in the busier direction
  double seconds = 0;        // traffic divided by bandwidth
};

// The constraint that limits the bound.
enum class Limit {
  kNothingMoves,   // there is one worker, or nothing to reduce
  kSlowestWorker,  // the gradient of the slowest worker fills its link; more summers do not help
  kAllLinks,       // every link is busy from the first byte to the last; more bandwidth of any link helps
};

// The case of one more summer.
struct OneMoreSummer {
  // The median of the summers' bandwidths, or of the workers' if there is no summer. 0: the network has no host left.
  double bits_per_second = 0;
  double bound_seconds = 0;
};

// Sizes of partitions in bytes.
struct PartitionSizes {
  uint32_t smallest = 0;
  uint32_t largest = 0;
  uint64_t by_default = 0;  // for a stream of this size
  PartitionLimits limits;   // that give the default
};

struct Explanation {
  uint32_t workers = 0;
  std::vector<MachineLoad> machines;  // by member
  uint32_t binding = 0;               // the member that takes longest, which binds the step
  uint32_t slowest_worker = 0;        // the worker with the least bandwidth
  Limit limit = Limit::kNothingMoves;

  // The link between switches that takes longest, if it takes longer than every machine's own link; empty: there is
  // none, or the network is not known (explain_uplinks.h).
  std::string binding_link;
  // Set if the network is known: the bound of the machines' own links alone; that of all strategies, of which summing
  // by owners is one; and whose links make the latter so long, for people (all_reduce_bound.h).
  double without_uplinks_seconds = 0;
  double all_strategies_seconds = 0;
  std::string all_strategies_limits;

  uint64_t stream_bytes = 0;
  double push_ratio = 1;          // bytes that workers push for each byte of the result
  double seconds = 0;             // step time with these partitions
  double bound_seconds = 0;       // step time with the best possible split among the owners
  double all_reduce_seconds = 0;  // the bound without CPU summers

  OneMoreSummer one_more;

  std::optional<CopyStage> copies;  // between GPU and CPU memory, set by explain_copies(); the other figures omit them

  size_t tensors = 0;
  size_t partitions = 0;
  PartitionSizes partition_sizes;
  uint64_t window_bytes = 0;  // of the slowest worker
};

// `plan` must be valid.
Explanation explain(const Plan& plan);

// Sets explanation.copies for machines whose copies have this bandwidth each way. explanation.seconds must be set.
void explain_copies(const Plan& plan, double bytes_per_second, Explanation& explanation);

// Returns a line per machine, followed by an explanation in sentences.
std::string to_text(const Explanation& explanation);

// Returns a line per kind of machine and a short summary.
std::string to_table(const Explanation& explanation);

}  // namespace gleaner::plan
