// advise() answers which strategy a job should take on a network, how long a step is, and what would make it shorter:
// more summers, faster links. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/plan/plan.h"
#include "common/topology/topology.h"

namespace gleaner::strategy {

// A way in which the job could sum a step's tensors.
struct Way {
  std::string strategy;
  uint32_t summers = 0;  // CPU summers that take part
  double seconds = 0;    // of a step
};

// A change of the network or the job, with the fastest way that it allows.
struct Change {
  enum class Kind { kSummer, kUplinks, kHostLinks };
  Kind kind = Kind::kSummer;
  Way fastest;
};

struct Advice {
  std::vector<Way> ways;  // the fastest first, and of equally fast ones that with the fewest summers
  // Only changes that make a step shorter by a hundredth at least, the fastest first.
  std::vector<Change> changes;

  // Returns the time of the strategy by this many summers; nothing: it is none of the ways.
  std::optional<double> seconds_of(const std::string& strategy, uint32_t summers) const;
};

// Compares summers, with each number of CPU summers up to `summers`, and all schedules, which use none. Hosts are
// workers, then summers, then hosts that take no part; the latter are where a further summer goes. Without one, it goes
// to the rack with the fewest members. A strategy sums all tensors, and "auto" each by its fastest one.
// `partition_bytes`: 0: the defaults. InvalidArgument: as candidates().
absl::StatusOr<Advice> advise(const topology::Topology& topology, uint32_t workers, uint32_t summers,
                              std::span<const plan::Tensor> tensors, uint64_t partition_bytes);

}  // namespace gleaner::strategy
