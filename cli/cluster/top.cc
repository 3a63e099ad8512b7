#include "cli/cluster/actions.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/machines.h"
#include "cli/cluster/top_view.h"
#include "cli/print.h"
#include "common/base/status_macros.h"
#include "common/kube/resource.h"

namespace gleaner::cli {

absl::Status run_top(const ClusterFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags));
  GLN_ASSIGN_OR_RETURN(const std::vector<api::TrainingJob> jobs,
                       access->list_as(kube::training_jobs(), "", api::parse_training_job));
  GLN_ASSIGN_OR_RETURN(const ReadMachines machines, read_machines(*access));
  if (flags.output == "json") {
    return print(absl::StrCat(top_json(machines.fleet.machines(), jobs, access->now()).dump(2), "\n"));
  }
  return print(top_text(machines.fleet.machines(), jobs, access->now()));
}

}  // namespace gleaner::cli
