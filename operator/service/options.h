// What gleaner-operator is told on its command line, once.
#pragma once

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/base/address.h"
#include "operator/service/scaler.h"

namespace gleaner::operation {

struct OperatorOptions {
  std::string ns;        // the operator's own namespace
  std::string watch;     // jobs of this namespace only; empty: of all
  Address listen;        // the coordinator's, for members
  std::string service;   // the Service by which members find it; its EndpointSlice is ours
  std::string pod_ip;    // what that EndpointSlice names; empty: listen.host
  std::string identity;  // of this replica in the lease
  Address metrics, health;
  std::string summer_image;
  std::string summer_priority_class;
  std::string shm_host_path, rdma_resource;  // as reconcile::Settings has them
  double summer_yield_above = 0.8;
  ScalingOptions scaling;
  uint32_t workers = 8;  // reconcilers at once
  absl::Duration lease_duration = absl::Seconds(15);
};

}  // namespace gleaner::operation
