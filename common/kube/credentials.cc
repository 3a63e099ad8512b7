#include "common/kube/credentials.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/secret_file.h"

namespace gleaner::kube {
namespace {

constexpr char kFolder[] = "/var/run/secrets/kubernetes.io/serviceaccount/";

}  // namespace

absl::StatusOr<Credentials> in_cluster_credentials() {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");
  const std::string token_file = absl::StrCat(kFolder, "token");
  if (host == nullptr || access(token_file.c_str(), F_OK) != 0) {
    return absl::NotFoundError(
        absl::StrCat("this process does not run in a pod with a service account: KUBERNETES_SERVICE_HOST or ",
                     token_file, " is missing"));
  }
  Credentials credentials;
  const bool is_v6 = absl::string_view(host).find(':') != absl::string_view::npos;
  credentials.server = absl::StrCat("https://", is_v6 ? "[" : "", host, is_v6 ? "]" : "", ":", port ? port : "443");
  credentials.ca_file = absl::StrCat(kFolder, "ca.crt");
  credentials.token_file = token_file;
  const auto ns = read_secret_file(absl::StrCat(kFolder, "namespace"));
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
