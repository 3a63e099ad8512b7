// Credentials are the API server's address, and the token, certificate or command by which this process authenticates
// to it.
//
// Files are read again for every use, so that rotated tokens and CAs take effect without a restart.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/kube/exec_credential.h"

namespace gleaner::kube {

struct Credentials {
  std::string server;            // https://10.96.0.1:443
  std::string ca_file;           // PEM
  std::string tls_server_name;   // name in the server's certificate; empty: the host of `server`
  std::string proxy_url;         // HTTP proxy, http://USER:PASSWORD@HOST:PORT; empty: none
  std::string token;             // bearer token; or
  std::string token_file;        // file with the bearer token; or
  std::string client_cert_file;  // PEM, with client_key_file
  std::string client_key_file;
  std::optional<ExecCommand> exec;  // prints a token or a certificate; used if none is above
  std::string ns;                   // namespace of the pod or of the context; "default" if neither names one
};

// Returns the credentials of a pod's service account: KUBERNETES_SERVICE_HOST and
// /var/run/secrets/kubernetes.io/serviceaccount. NotFound if this process does not run in a pod.
absl::StatusOr<Credentials> in_cluster_credentials();

// Returns the credentials of a kubeconfig: `path`, else $KUBECONFIG, else ~/.kube/config. An empty `context` means the
// current one. Inline data is written to files that only this process can see. Unimplemented for auth providers and for
// other fields that are not supported; the message says what to use instead.
absl::StatusOr<Credentials> kubeconfig_credentials(const std::string& path, const std::string& context);

// Returns in_cluster_credentials() if both arguments are empty and this process runs in a pod, else
// kubeconfig_credentials().
absl::StatusOr<Credentials> find_credentials(const std::string& kubeconfig, const std::string& context);

}  // namespace gleaner::kube
