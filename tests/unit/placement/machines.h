// Makes machines for tests of placement.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/placement/placement.h"

namespace gleaner::placement {

inline const absl::Time kNow = absl::FromUnixSeconds(1'800'000'000);

// Returns the profile of a machine with 25 Gbit/s, 32 cores and 64 GiB, of which 20 Gbit/s, 10 cores and 16 GiB are
// spare.
inline api::NodeProfile spare_profile(const std::string& name) {
  api::NodeProfile profile;
  profile.meta.name = name;
  profile.status.observed_time = kNow - absl::Seconds(5);
  profile.status.cpus = 32;
  profile.status.memory_bytes = uint64_t{64} << 30;
  profile.status.bits_per_second = 25e9;
  profile.status.speed_source = api::SpeedSource::kSysfs;
  profile.status.used_bits_per_second = 5e9;
  profile.status.used_cpus = 20;
  profile.status.spare = {.cpus = 10, .memory_bytes = uint64_t{16} << 30, .bits_per_second = 20e9};
  return profile;
}

inline Machine machine_of(api::NodeProfile profile) {
  Machine machine;
  machine.name = profile.meta.name;
  machine.profile = std::make_shared<const api::NodeProfile>(std::move(profile));
  return machine;
}

inline Machine spare_machine(const std::string& name) { return machine_of(spare_profile(name)); }

}  // namespace gleaner::placement
