// OperatorOptions are the options of gleaner-operator, from its command line.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/base/address.h"
#include "common/placement/node_labels.h"
#include "operator/service/scaler.h"

namespace gleaner::operation {

struct OperatorOptions {
  std::string ns;        // the operator's own namespace
  std::string watch;     // the namespace whose jobs it runs; empty: all namespaces
  Address listen;        // the address at which the coordinator listens for members
  std::string service;   // the Service by which members find the coordinator; this operator writes its EndpointSlice
  std::string pod_ip;    // this replica's address, for that EndpointSlice
  std::string identity;  // name of this replica in the lease
  Address metrics, health;
  std::string summer_image;
  std::string summer_priority_class;
  std::string shm_host_path, rdma_resource;  // as in reconcile::PodSettings
  double summer_yield_above = 0.8;
  placement::LabelLevels label_levels = placement::default_label_levels();  // of the Topology, widest first
  ScalingOptions scaling;
  uint32_t workers = 8;  // jobs reconciled at the same time
  absl::Duration lease_duration = absl::Seconds(15);
};

}  // namespace gleaner::operation
