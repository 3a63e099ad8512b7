#include "operator/service/operator_metrics.h"

#include "common/placement/placement.h"

namespace gleaner::operation {

OperatorMetrics::OperatorMetrics(prometheus::Registry& registry, const std::string& version)
    : leader_(&prometheus::BuildGauge()
                   .Name("gleaner_operator_leader")
                   .Help("1 at the replica that holds the lease, else 0")
                   .Register(registry)
                   .Add({})),
      expiry_(&prometheus::BuildGauge()
                   .Name("gleaner_operator_certificate_expiry_seconds")
                   .Help("Unix time at which this certificate expires")
                   .Register(registry)),
      profiles_(&prometheus::BuildGauge()
                     .Name("gleaner_operator_node_profiles")
                     .Help("NodeProfiles, by whether they are recent enough for placement")
                     .Register(registry)),
      topology_(registry) {
  prometheus::BuildGauge()
      .Name("gleaner_operator_info")
      .Help("1")
      .Register(registry)
      .Add({{"version", version}})
      .Set(1);
}

void OperatorMetrics::update(const Identity& identity,
                             const std::vector<std::shared_ptr<const api::NodeProfile>>& profiles,
                             const api::TopologyStatus& topology, absl::Time now) {
  const auto set = [this](const char* name, const std::string& certificate) {
    if (const auto end = expiry(certificate); end.ok()) {
      expiry_->Add({{"certificate", name}}).Set(static_cast<double>(absl::ToUnixSeconds(*end)));
    }
  };
  set("ca", identity.ca.certificate);
  set("server", identity.server.certificate);
  double fresh = 0;
  for (const auto& profile : profiles) fresh += now - profile->status.observed_time <= placement::kProfileLife;
  profiles_->Add({{"state", "fresh"}}).Set(fresh);
  profiles_->Add({{"state", "stale"}}).Set(static_cast<double>(profiles.size()) - fresh);
  topology_.show(topology);
}

}  // namespace gleaner::operation
