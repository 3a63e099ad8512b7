// Bounds of other operations than push_pull (model.h): the least time in seconds that the bandwidths allow, with the
// CPU summers of the fleet and without them. Machines are full duplex. `bytes` are those of one worker's vector. All
// functions require a valid fleet, and return 0 s for one worker.
#pragma once

#include "absl/status/statusor.h"
#include "common/plan/model.h"

namespace gleaner::plan {

struct CollectiveBound {
  double seconds = 0;                  // with the fleet's CPU summers
  double without_summers_seconds = 0;  // with the workers alone
  bool summers_can_help = false;       // whether any summers, also faster or more of them, could make it shorter
};

// The push_pull of a vector, model.h's bound.
CollectiveBound all_reduce_bound(const Fleet& fleet, double bytes);

// Reduce-scatter or all-gather alone, with results of equal size on all workers: (n-1)/n · M / min B. Each worker must
// send (n-1)/n of its vector in the one and receive as much in the other, so summers gain nothing. A ring meets it.
CollectiveBound scatter_or_gather_bound(const Fleet& fleet, double bytes);

// A reduce-scatter of R bytes and an all-gather of A bytes at the same time, as in sharded data parallel training:
//   T = max( ((n-1)·max(R,A) + min(R,A)) / (n · min B),  (n-1)(R+A) / (ΣB + (n-2)/n · ΣC) )
CollectiveBound scatter_and_gather_bound(const Fleet& fleet, double reduced_bytes, double gathered_bytes);

// Hybrid sharding of n = r·m workers: m shards, and r replicas of each. The r workers with one shard all-reduce its M/m
// bytes, beside the other shards, and the summers serve all shards alike:
//   T = max( (M/m) / B,  2(r-1)(M/m) / (rB + (r-2)/r · (k/m)·C) )
// B is the least bandwidth of a worker, and kC the sum of the summers'. InvalidArgument: `replicas` does not divide n.
absl::StatusOr<CollectiveBound> hybrid_sharding_bound(const Fleet& fleet, double bytes, uint32_t replicas);

}  // namespace gleaner::plan
