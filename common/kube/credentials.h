// How to reach the API server, and who we are to it.
//
// Files are read again for every use, so that rotated tokens and CAs take effect without a restart.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace gleaner::kube {

struct Credentials {
  std::string server;            // https://10.96.0.1:443
  std::string ca_file;           // PEM
  std::string token;             // bearer token, or
  std::string token_file;        // a file with it, or
  std::string client_cert_file;  // PEM, with
  std::string client_key_file;
  std::string ns;  // the pod's own namespace, or the context's; "default" if none is said
};

// What a pod is given: KUBERNETES_SERVICE_HOST and /var/run/secrets/kubernetes.io/serviceaccount. NotFound: this is no
// pod.
absl::StatusOr<Credentials> in_cluster_credentials();

// A kubeconfig: `path`, else $KUBECONFIG, else ~/.kube/config; `context` empty: the current one. Data given inline is
// written to private files of this process. Unimplemented: exec plugins and auth providers; says what to use instead.
absl::StatusOr<Credentials> kubeconfig_credentials(const std::string& path, const std::string& context);

// In a pod the first, else the second.
absl::StatusOr<Credentials> find_credentials(const std::string& kubeconfig, const std::string& context);

}  // namespace gleaner::kube
