// Estimator computes the spare resources of a machine from samples. Pure.
//
// Owners are all users of the machine but Gleaner's summers. The spare resources are:
// - CPU: allocatable - max(requests, use) - margin, with the owners' requests and use. If owners use at least half of
//   allocatable and tasks wait for a CPU (PSI), the result shrinks: by nothing at 10 % of the time, to 0 at 50 %.
// - Memory: min(allocatable - requests, the kernel's available memory) - margin. Memory of summers counts as available.
// - Bandwidth: speed - the owners' use in the busier direction - margin; 0 while the speed is unknown.
//
// All three fall with a time constant of 2 s and rise with one of 60 s, so resources that owners take soon stop to
// count, and resources that owners free count only after a while. They are for all summers together: placement
// subtracts the resources that it promised to summers on the machine.
#pragma once

#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "agent/spare/rate.h"
#include "agent/spare/sample.h"
#include "agent/spare/speed_check.h"
#include "common/base/smoother.h"

namespace gleaner::spare {

struct EstimatorOptions {
  double margin = 0.1;  // share of allocatable CPU and memory, and of the speed, that never counts as spare
  absl::Duration fall = absl::Seconds(2);
  absl::Duration rise = absl::Seconds(60);
};

struct Estimate {
  bool measured = false;  // the use of the CPUs is known; if not, there are no spare resources
  double used_cpus = 0;   // by owners, over the last interval
  double used_bits_per_second = 0;
  double summers_cpus = 0;
  double summers_bits_per_second = 0;
  double cpu_pressure = -1;  // percent; -1: unknown
  CheckedSpeed speed;
  api::Spare spare;
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
  api::Spare spare_now(const Sample& sample) const;

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
