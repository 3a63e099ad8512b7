#include "common/kube/credentials.h"

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/secret_file.h"
#include "common/kube/find_cluster.h"

namespace gleaner::kube {

absl::StatusOr<Credentials> in_cluster_credentials() {
  const std::string token_file = absl::StrCat(kServiceAccountFolder, "token");
  if (!is_in_pod()) {
    return absl::NotFoundError(
        absl::StrCat("this process does not run in a pod with a service account: KUBERNETES_SERVICE_HOST or ",
                     token_file, " is missing"));
  }
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  Credentials credentials;
  const bool is_v6 = absl::string_view(host).find(':') != absl::string_view::npos;
  credentials.server = absl::StrCat("https://", is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", port ? port : "443");
  credentials.ca_file = absl::StrCat(kServiceAccountFolder, "ca.crt");
  credentials.token_file = token_file;
  const auto ns = read_secret_file(absl::StrCat(kServiceAccountFolder, "namespace"));
  credentials.ns = ns.ok() ? *ns : "default";
  return credentials;
}

absl::StatusOr<Credentials> find_credentials(const std::string& kubeconfig, const std::string& context) {
  if (kubeconfig.empty() && context.empty()) {
    if (auto found = in_cluster_credentials(); found.ok()) return found;
  }
  return kubeconfig_credentials(kubeconfig, context);
}

}  // namespace gleaner::kube
