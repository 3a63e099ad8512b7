// TopologyWriter keeps the Topology of the cluster as the nodes' labels, what agents measure, and its own
// spec say. Thread safe.
#pragma once

#include "absl/status/status.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "operator/service/cluster.h"

namespace gleaner::operation {

class TopologyWriter {
 public:
  // All references must outlive this object.
  TopologyWriter(const Env& env, kube::Client& client, const Cluster& cluster)
      : env_(env), client_(client), cluster_(cluster) {}

  // Creates the Topology if there is none, and writes its status if that has changed.
  absl::Status write();

 private:
  const Env env_;
  kube::Client& client_;
  const Cluster& cluster_;
};

}  // namespace gleaner::operation
