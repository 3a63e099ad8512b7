// Sample has the readings of a machine at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/api/node_profile.h"

namespace gleaner::spare {

struct Traffic {
  double received_bytes = 0, sent_bytes = 0;  // counters
};

// The use of one of Gleaner's summers on this machine (a pod with the label gleaner.dev/role=summer). It does not count
// as the owners' use. If a reading is missing, the summer's use counts as the owners'.
struct SummerUse {
  std::string uid;                    // of the pod
  std::optional<double> cpu_seconds;  // counter
  double memory_bytes = 0;
  std::optional<Traffic> traffic;
};

struct Sample {
  absl::Duration at;  // monotonic time
  double allocatable_cpus = 0;
  double allocatable_memory_bytes = 0;
  double requested_cpus = 0;  // by all pods but summers
  double requested_memory_bytes = 0;
  std::optional<double> cpu_seconds;             // counter, of the whole machine
  std::optional<double> available_memory_bytes;  // the kernel's estimate
  std::optional<double> cpu_pressure;            // PSI "some avg10", percent
  std::optional<Traffic> traffic;                // of the device with the default route
  std::vector<SummerUse> summers;
  double claimed_bits_per_second = 0;  // 0: unknown
  api::SpeedSource claimed_by = api::SpeedSource::kUnknown;
};

}  // namespace gleaner::spare
