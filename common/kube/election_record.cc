#include "common/kube/election_record.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/kube/object.h"

namespace gleaner::kube {
namespace {

std::string micro_time(absl::Time time) { return absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", time, absl::UTCTimeZone()); }

int64_t number_at(const Object& object, std::initializer_list<const char*> path) {
  const Object* value = find(object, path);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>() : 0;
}

}  // namespace

void ElectionRecord::observe(const Object& lease, absl::Duration now) {
  // Any change of the Lease shows that its holder is alive. Equal resource versions mean that the Lease has not
  // changed.
  std::string version = resource_version_of(lease);
  if (version == version_) return;
  version_ = std::move(version);
  holder_ = text_at(lease, {"spec", "holderIdentity"});
  lease_duration_ = absl::Seconds(number_at(lease, {"spec", "leaseDurationSeconds"}));
  observed_at_ = now;
}

bool ElectionRecord::is_open_to(const std::string& identity, absl::Duration now) const {
  return holder_.empty() || holder_ == identity || now >= observed_at_ + lease_duration_;
}

Object ElectionRecord::claimed(Object lease, const std::string& ns, const std::string& name,
                               const std::string& identity, absl::Duration duration, absl::Time now) {
  const bool is_ours = text_at(lease, {"spec", "holderIdentity"}) == identity;
  const bool exists = lease.is_object() && !lease.empty();
  const int64_t transitions = number_at(lease, {"spec", "leaseTransitions"});
  if (!exists) {
    lease = {
        {"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}, {"metadata", {{"namespace", ns}, {"name", name}}}};
  }
  Object& spec = lease["spec"];
  spec["holderIdentity"] = identity;
  spec["leaseDurationSeconds"] = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(absl::ToDoubleSeconds(duration))));
  spec["renewTime"] = micro_time(now);
  if (!is_ours) {
    spec["acquireTime"] = micro_time(now);
    spec["leaseTransitions"] = exists ? transitions + 1 : 0;
  }
  return lease;
}

uint64_t ElectionRecord::term(const Object& lease) {
  constexpr int kTransitionBits = 24;
  absl::Time created;
  std::string wrong;
  const std::string stamp = text_at(lease, {"metadata", "creationTimestamp"});
  const bool known = absl::ParseTime(absl::RFC3339_full, stamp, &created, &wrong);
  const int64_t seconds = known ? std::max<int64_t>(absl::ToUnixSeconds(created), 0) : 0;
  const int64_t transitions =
      std::clamp<int64_t>(number_at(lease, {"spec", "leaseTransitions"}), 0, (int64_t{1} << kTransitionBits) - 1);
  return (static_cast<uint64_t>(seconds) << kTransitionBits) + static_cast<uint64_t>(transitions);
}

Object ElectionRecord::released(Object lease, absl::Time now) {
  Object& spec = lease["spec"];
  spec["holderIdentity"] = "";
  spec["leaseDurationSeconds"] = 1;  // the API server requires a positive duration
  spec["renewTime"] = micro_time(now);
  return lease;
}

}  // namespace gleaner::kube
