// Metrics publishes the agent's Prometheus metrics. One thread sets them; scrapes may run at the same time.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "agent/spare/estimator.h"
#include "common/api/node_profile.h"

namespace gleaner::publish {

class Metrics {
 public:
  // Every metric has the label `node`.
  Metrics(prometheus::Registry& registry, const std::string& node);

  // `nvml_failures`: the number of fields and GPUs that NVML failed to read.
  void show(const api::NodeProfileStatus& status, const spare::Estimate& estimate, size_t nvml_failures);
  void count_write(const absl::Status& status);

 private:
  prometheus::Gauge &cpus_, &bits_per_second_, &used_cpus_, &used_bits_per_second_, &pressure_, &spare_cpus_,
      &spare_memory_bytes_, &spare_bits_per_second_, &summers_cpus_, &summers_bits_per_second_, &speed_known_, &gpus_,
      &nvml_failures_;
  prometheus::Counter &writes_, &failed_writes_;
};

}  // namespace gleaner::publish
