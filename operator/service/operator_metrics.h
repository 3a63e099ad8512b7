// OperatorMetrics publishes gleaner_operator_* (docs/metrics.md). Thread safe.
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/api/node_profile.h"
#include "operator/service/certificates.h"
#include "operator/service/topology_metrics.h"

namespace gleaner::operation {

class OperatorMetrics {
 public:
  OperatorMetrics(prometheus::Registry& registry, const std::string& version);
  void set_leader(bool leader) { leader_->Set(leader ? 1 : 0); }
  void update(const Identity& identity, const std::vector<std::shared_ptr<const api::NodeProfile>>& profiles,
              const api::TopologyStatus& topology, absl::Time now);

 private:
  prometheus::Gauge* leader_;
  prometheus::Family<prometheus::Gauge>* expiry_;
  prometheus::Family<prometheus::Gauge>* profiles_;
  TopologyMetrics topology_;
};

}  // namespace gleaner::operation
