// StepBound is the bound of a job's step (common/plan/model.h) on a cluster: by the links of its machines and by the
// uplinks of their groups. It tells what one more summer, or one fewer, is worth: a summer behind a full uplink is
// worth what the uplink leaves to it.
//
// A StepBound equals plan::bound_with_uplinks() on the network of network_of() (BytePS §4.1, for links that form a
// tree). An uplink of unknown bandwidth limits nothing. A bound costs O(members + groups), times the steps of a
// bisection. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "common/fabric/fabric.h"
#include "common/plan/link_tree.h"

namespace gleaner::fabric {

class StepBound {
 public:
  // The fabric must outlive this object. `push_ratio`: as in plan::Fleet.
  StepBound(const Fabric& fabric, double push_ratio);

  // Adds a member with a link of this bandwidth, each way. Nodes that the fabric does not know are at the core.
  void add_worker(absl::string_view node, double bits_per_second) { add(node, bits_per_second, true); }
  void add_summer(absl::string_view node, double bits_per_second) { add(node, bits_per_second, false); }

  // Returns the bound in seconds for each byte of the vector; 0 with fewer than two workers.
  double seconds_per_byte() const;
  // Returns the bound with one more summer; infinity if it is not at most `most`, which costs one step of a bisection.
  double with_summer(absl::string_view node, double bits_per_second,
                     double most = std::numeric_limits<double>::infinity()) const;

 private:
  void add(absl::string_view node, double bits_per_second, bool is_worker);
  uint32_t branch_of(std::optional<uint32_t> group);
  double least_seconds_per_byte(std::vector<plan::Branch> branches, double most) const;

  const Fabric& fabric_;
  const double push_ratio_;
  uint32_t workers_ = 0;
  std::vector<plan::Branch> branches_;                // the root, then groups with members, and members
  absl::flat_hash_map<uint32_t, uint32_t> by_group_;  // the branch of each group with members
};

// Returns whether an uplink of known bandwidth parts some of these nodes from others.
bool has_known_uplinks(const Fabric& fabric, const std::vector<std::string>& nodes);

}  // namespace gleaner::fabric
