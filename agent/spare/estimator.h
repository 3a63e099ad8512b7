// What a machine can spare: pure, samples in, estimates out.
//
// CPU: allocatable - max(requests, use) - margin, where requests and use are those of the machine's owners: everything
// but our own summers. A machine at least half busy whose tasks wait for a CPU (PSI) spares less: nothing is taken off
// at 10 % of the time, all of it at 50 %. Memory: the smaller of allocatable - requests and what the kernel has
// available, less the margin. Bandwidth: speed - use by owners, the busier direction, less the margin; 0 while the
// speed is unknown. All three fall with a time constant of 2 s and rise with one of 60 s. They are for all summers
// together: who places summers takes off what those there were given.
#pragma once

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "agent/spare/rate.h"
#include "agent/spare/sample.h"
#include "agent/spare/smoother.h"
#include "agent/spare/speed_check.h"

namespace gleaner::spare {

struct EstimatorOptions {
  double margin = 0.1;  // of allocatable CPU and memory, and of the speed, that is never given away
  absl::Duration fall = absl::Seconds(2);
  absl::Duration rise = absl::Seconds(60);
};

struct Estimate {
  bool measured = false;  // the CPU's use is known; else nothing is spared
  double used_cpus = 0;   // by owners, over the last interval
  double used_bits_per_second = 0;
  double summers_cpus = 0;
  double summers_bits_per_second = 0;
  double cpu_pressure = -1;  // percent; -1: not known
  CheckedSpeed speed;
  types::Spare spare;
};

class Estimator {
 public:
  explicit Estimator(const EstimatorOptions& options);

  Estimate update(const Sample& sample);

 private:
  struct SummerRates {
    Rate cpu, received, sent;
    double cpus = 0, received_bytes_per_second = 0, sent_bytes_per_second = 0;
    bool seen = false;
  };

  void update_summers(const Sample& sample);
  void update_use(const Sample& sample);
  types::Spare spare_now(const Sample& sample) const;

  const EstimatorOptions options_;
  SpeedCheck speed_check_;
  Rate cpu_, received_, sent_;
  double all_cpus_ = 0, received_bytes_per_second_ = 0, sent_bytes_per_second_ = 0;
  absl::flat_hash_map<std::string, SummerRates> summers_;  // by pod uid
  double summers_memory_bytes_ = 0;
  Estimate last_;
  Smoother cpus_, memory_, bits_;
};

}  // namespace gleaner::spare
