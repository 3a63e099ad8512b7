#include "cli/cluster/logs_view.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/api/meta.h"

namespace gleaner::cli {
namespace {

constexpr size_t kPodsShown = 20;

}  // namespace

std::string logs_text(const api::TrainingJob& job, const std::vector<placement::Pod>& pods) {
  const std::string kubectl = absl::StrCat("kubectl -n ", job.meta.ns, " logs ");
  const auto by_role = [&](absl::string_view role) {
    return absl::StrCat(kubectl, "-l ", api::kJobLabel, "=", job.meta.name, ",", api::kRoleLabel, "=", role,
                        " --prefix --tail=50 --max-log-requests=100\n");
  };
  std::string text = absl::StrCat(
      "# all workers, and all summers:\n", by_role("worker"), by_role("summer"), "# the operator's log of this job:\n",
      "kubectl -n gleaner-system logs deployment/gleaner-operator --all-pods --prefix | grep ", job.meta.key(), "\n");
  std::vector<std::string> names;
  for (const placement::Pod& pod : pods) {
    if (pod.job == job.meta.key()) names.push_back(pod.key.substr(job.meta.ns.size() + 1));
  }
  std::sort(names.begin(), names.end());
  if (names.empty()) return absl::StrCat(text, "# It has no pods now.\n");
  absl::StrAppend(&text, "# one pod:\n");
  for (size_t i = 0; i < std::min(kPodsShown, names.size()); ++i) {
    absl::StrAppend(&text, kubectl, "-f ", names[i], "\n");
  }
  if (names.size() > kPodsShown) absl::StrAppend(&text, "# and ", names.size() - kPodsShown, " more\n");
  return text;
}

}  // namespace gleaner::cli
