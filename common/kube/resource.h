// Resource names the kind of object that a call refers to.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

namespace gleaner::kube {

struct Resource {
  std::string group;  // empty: the core group
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  std::string api_version() const { return group.empty() ? version : absl::StrCat(group, "/", version); }
};

inline Resource pods() { return {"", "v1", "pods", "Pod", true}; }
inline Resource nodes() { return {"", "v1", "nodes", "Node", false}; }
inline Resource services() { return {"", "v1", "services", "Service", true}; }
inline Resource secrets() { return {"", "v1", "secrets", "Secret", true}; }
inline Resource config_maps() { return {"", "v1", "configmaps", "ConfigMap", true}; }
inline Resource namespaces() { return {"", "v1", "namespaces", "Namespace", false}; }
inline Resource leases() { return {"coordination.k8s.io", "v1", "leases", "Lease", true}; }
inline Resource endpoint_slices() { return {"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true}; }
inline Resource events() { return {"", "v1", "events", "Event", true}; }
inline Resource token_reviews() { return {"authentication.k8s.io", "v1", "tokenreviews", "TokenReview", false}; }
inline Resource training_jobs() { return {"gleaner.dev", "v1alpha1", "trainingjobs", "TrainingJob", true}; }
inline Resource node_profiles() { return {"gleaner.dev", "v1alpha1", "nodeprofiles", "NodeProfile", false}; }
inline Resource topologies() { return {"gleaner.dev", "v1alpha1", "topologies", "Topology", false}; }
inline Resource reduction_plans() { return {"gleaner.dev", "v1alpha1", "reductionplans", "ReductionPlan", true}; }

}  // namespace gleaner::kube
