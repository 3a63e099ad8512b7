// What was read of a machine at one moment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "operator/types/node_profile.h"

namespace gleaner::spare {

struct Traffic {
  double received_bytes = 0, sent_bytes = 0;  // counters
};

// Our own pods on this machine (label gleaner.dev/role=summer). What they use is no use by the machine's owners; what
// of it can't be read counts as the owners'.
struct SummerUse {
  std::string uid;                    // of the pod
  std::optional<double> cpu_seconds;  // counter
  double memory_bytes = 0;
  std::optional<Traffic> traffic;
};

struct Sample {
  absl::Duration at;  // monotonic
  double allocatable_cpus = 0;
  double allocatable_memory_bytes = 0;
  double requested_cpus = 0;  // of all pods that are not summers
  double requested_memory_bytes = 0;
  std::optional<double> cpu_seconds;             // counter, of the whole machine
  std::optional<double> available_memory_bytes;  // as the kernel estimates it
  std::optional<double> cpu_pressure;            // PSI some avg10, percent
  std::optional<Traffic> traffic;                // of the device that the default route leaves by
  std::vector<SummerUse> summers;
  double claimed_bits_per_second = 0;  // 0: not known
  types::SpeedSource claimed_by = types::SpeedSource::kUnknown;
};

}  // namespace gleaner::spare
