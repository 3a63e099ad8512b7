// ElectionRecord holds the state of a Lease, and the time at which this replica observed its last change. Pure.
// leader.h explains the rules.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/kube/client.h"

namespace gleaner::kube {

class ElectionRecord {
 public:
  // Records the Lease as read at `now`, a time of a monotonic clock.
  void observe(const Object& lease, absl::Duration now);

  const std::string& holder() const { return holder_; }
  // Returns whether `identity` may take the lease: it has no holder, `identity` holds it, or it has not changed for the
  // lease duration that its holder wrote.
  bool is_open_to(const std::string& identity, absl::Duration now) const;

  // Returns the Lease with `identity` as its holder from `now` on. Other fields of `lease` are kept; an empty `lease`
  // makes a new one.
  static Object claimed(Object lease, const std::string& ns, const std::string& name, const std::string& identity,
                        absl::Duration duration, absl::Time now);
  // Returns a number that grows with every change of the holder, even if the Lease was deleted and created again. Its
  // low 24 bits are spec.leaseTransitions, the bits above are the creation time in Unix seconds.
  static uint64_t term(const Object& lease);
  // Returns the Lease without a holder.
  static Object released(Object lease, absl::Time now);

 private:
  std::string version_;
  std::string holder_;
  absl::Duration lease_duration_;
  absl::Duration observed_at_;
};

}  // namespace gleaner::kube
