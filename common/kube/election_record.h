// What a Lease says, and the times at which its changes were observed here. Pure; rules of leader.h.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/kube/client.h"

namespace gleaner::kube {

class ElectionRecord {
 public:
  // Takes in the Lease as it was read at `now` (of a monotonic clock).
  void observe(const Object& lease, absl::Duration now);

  const std::string& holder() const { return holder_; }
  // Whether `identity` may take the lease: it is free, its own, or has not changed for as long as its holder said.
  bool is_open_to(const std::string& identity, absl::Duration now) const;

  // The Lease with `identity` as its holder from now on; keeps what else stands in `lease`, which may be empty.
  static Object claimed(Object lease, const std::string& ns, const std::string& name, const std::string& identity,
                        absl::Duration duration, absl::Time now);
  // Which holder of its life this Lease has: grows whenever it changes hands, also when it was deleted and made anew.
  static uint64_t term(const Object& lease);
  // The Lease with nobody as its holder.
  static Object released(Object lease, absl::Time now);

 private:
  std::string version_;
  std::string holder_;
  absl::Duration lease_duration_;
  absl::Duration observed_at_;
};

}  // namespace gleaner::kube
