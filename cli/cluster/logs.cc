#include "cli/cluster/actions.h"

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/logs_view.h"
#include "cli/print.h"
#include "common/base/status_macros.h"
#include "common/kube/resource.h"

namespace gleaner::cli {

absl::Status run_logs(const ClusterFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags));
  GLN_ASSIGN_OR_RETURN(const api::TrainingJob job, access->job(flags.job));
  GLN_ASSIGN_OR_RETURN(
      const std::vector<placement::Pod> pods,
      access->list_as(kube::pods(), access->ns(), placement::parse_pod, absl::StrCat(api::kJobLabel, "=", flags.job)));
  return print(logs_text(job, pods));
}

}  // namespace gleaner::cli
