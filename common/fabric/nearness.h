// Nearness tells how near a node is to the workers of a job, by the groups that it shares with them. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "common/fabric/fabric.h"

namespace gleaner::fabric {

class Nearness {
 public:
  // The fabric must outlive this object.
  Nearness(const Fabric& fabric, std::span<const std::string> worker_nodes);

  // Returns the number of nested groups that a node shares with a worker: 0 if none, and more if it is nearer.
  uint32_t of(absl::string_view node) const;

 private:
  const Fabric& fabric_;
  absl::flat_hash_set<uint32_t> of_workers_;  // groups with workers, and the groups around them
};

}  // namespace gleaner::fabric
