#include "common/kube/find_cluster.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gleaner::kube {
namespace {

std::vector<std::string> candidate_paths(const std::string& path) {
  if (!path.empty()) return {path};
  if (const char* listed = std::getenv("KUBECONFIG"); listed != nullptr && *listed != '\0') {
    return absl::StrSplit(listed, ':', absl::SkipEmpty());
  }
  const char* home = std::getenv("HOME");
  return {absl::StrCat(home == nullptr ? "" : home, "/.kube/config")};
}

}  // namespace

bool is_in_pod() {
  return std::getenv("KUBERNETES_SERVICE_HOST") != nullptr &&
         ::access(absl::StrCat(kServiceAccountFolder, "token").c_str(), F_OK) == 0;
}

absl::StatusOr<std::vector<std::string>> kubeconfig_files(const std::string& path) {
  const std::vector<std::string> candidates = candidate_paths(path);
  std::vector<std::string> files;
  std::error_code missing;
  for (const std::string& candidate : candidates) {
    if (std::filesystem::exists(candidate, missing)) files.push_back(candidate);
  }
  if (!files.empty()) return files;
  return absl::NotFoundError(absl::StrCat("there is no kubeconfig at ",
                                          candidates.empty() ? "(nowhere)" : candidates.front(),
                                          "; name one by --kubeconfig or $KUBECONFIG"));
}

absl::Status find_cluster() { return is_in_pod() ? absl::OkStatus() : kubeconfig_files("").status(); }

}  // namespace gleaner::kube
