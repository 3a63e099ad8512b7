// Finds the files with which a process reaches a Kubernetes cluster. A library of its own, because programs without a
// client of the API server also need to know whether there is a cluster.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gleaner::kube {

inline constexpr char kServiceAccountFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount/";

// Returns whether this process runs in a pod with a service account.
bool is_in_pod();

// Returns the kubeconfig files that exist: `path`, else those of $KUBECONFIG, else ~/.kube/config. Errors: NotFound if
// there is none.
absl::StatusOr<std::vector<std::string>> kubeconfig_files(const std::string& path);

// Returns OK if this process runs in a pod or there is a kubeconfig. Errors: NotFound. Asks no cluster.
absl::Status find_cluster();

}  // namespace gleaner::kube
