// Makes jobs for tests of the autoscaler, and an autoscaler that is past its first pause.
#pragma once

#include <string>
#include <vector>

#include "operator/autoscale/autoscaler.h"

namespace gleaner::autoscale {

inline constexpr absl::Duration kStart = absl::Hours(1);

// Returns a job of n workers and k summers with 1 Gbit/s each and 100 MB a step; the summers run on machines s0, s1,
// ...
inline Job job_of(const std::string& key, uint32_t workers, uint32_t summers) {
  Job job;
  job.key = key;
  job.max = 8;
  job.summer_cpus = 0.1;
  job.worker_bits_per_second.assign(workers, 1e9);
  job.bytes_per_step = 100e6;
  for (uint32_t j = 0; j < summers; ++j) {
    job.summers.push_back({j, "s" + std::to_string(j), 1e9, true, false, absl::Hours(1), Suitability{true, ""}});
  }
  return job;
}

inline Candidate machine(const std::string& node, double bits = 1e9) {
  return {node, bits, Reading{4, absl::Seconds(5)}, Reading{bits, absl::Seconds(5)}};
}

inline void measure(Job& job, double step, double exposed, absl::Duration age = absl::Seconds(5)) {
  job.step_seconds = Reading{step, age};
  job.exposed_seconds = Reading{exposed, age};
}

inline Settings measured() {
  Settings settings;
  settings.measured = true;
  return settings;
}

// Returns an autoscaler that already knows these jobs, and that may add summers in its next round.
inline Autoscaler settled(const Settings& settings, const std::vector<Job>& jobs) {
  Autoscaler scaler(settings);
  std::vector<Job> before = jobs;
  for (Job& job : before) {
    job.candidates.clear();
    job.contested.clear();
  }
  scaler.round(before, kStart - settings.grow_pause);
  return scaler;
}

}  // namespace gleaner::autoscale
