// ObjectRepair keeps the objects that jobs need all the time, and that users may delete or edit: the bootstrap
// ConfigMap of each namespace with jobs, and the Service of each job with several workers. It also deletes the
// ConfigMap of a namespace that has no jobs any more. It also keeps the Topology of the cluster (topology_writer.h).
//
// ObjectRepair reads only the caches, so it also works for a job whose own reconciliations fail. A key is a namespace,
// "namespace/name" of a job, or kTopologyKey. Thread safe.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "common/api/training_job.h"
#include "common/base/env.h"
#include "common/kube/client.h"
#include "common/kube/controller.h"
#include "operator/service/cluster.h"
#include "operator/service/identity_store.h"
#include "operator/service/topology_writer.h"

namespace gleaner::operation {

class ObjectRepair final : public kube::Reconciler {
 public:
  // All references must outlive this object.
  ObjectRepair(const Env& env, kube::Client& client, const Cluster& cluster, IdentityStore& identities)
      : client_(client), cluster_(cluster), identities_(identities), topology_(env, client, cluster) {}

  kube::Result reconcile(const std::string& key) override;

 private:
  absl::Status repair_bootstrap(const std::string& ns);
  absl::Status repair_service(const std::string& job_key);

  kube::Client& client_;
  const Cluster& cluster_;
  IdentityStore& identities_;
  TopologyWriter topology_;
};

// Returns the part of IdentityStore that looks into the caches of `cluster`, which must outlive it.
IdentityStore::FindBootstrap find_bootstrap_in(const Cluster& cluster);

}  // namespace gleaner::operation
