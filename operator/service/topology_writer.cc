#include "operator/service/topology_writer.h"

#include "common/base/status_macros.h"
#include "common/fabric/status.h"
#include "operator/service/field_manager.h"

namespace gleaner::operation {
namespace {

kube::Object empty_topology() {
  return {{"apiVersion", api::kApiVersion}, {"kind", "Topology"}, {"metadata", {{"name", api::kTopologyName}}}};
}

}  // namespace

absl::Status TopologyWriter::write() {
  FabricCache& fabric = cluster_.measured_fabric();
  fabric.measure(env_.clock->now());
  const auto known = cluster_.topology();
  if (known == nullptr) {
    const absl::Status created = client_.create(kube::topologies(), empty_topology()).status();
    if (!created.ok() && !absl::IsAlreadyExists(created)) return created;
  }
  const api::Topology before = known == nullptr ? api::Topology() : *known;
  const api::TopologyStatus status =
      fabric::status_of(*fabric.get(), fabric.near(), before.uplinks, before.status.conditions, env_.clock->now());
  if (known != nullptr && before.status == status) return absl::OkStatus();
  kube::Object object = empty_topology();
  object["status"] = api::to_json(status);
  return client_.apply(kube::topologies(), object, apply_options("status")).status();
}

}  // namespace gleaner::operation
