#include "cli/cluster/actions.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/cluster/access.h"
#include "cli/cluster/explain_gpus.h"
#include "cli/cluster/explain_uplink.h"
#include "cli/cluster/explain_view.h"
#include "cli/cluster/machines.h"
#include "cli/print.h"
#include "cli/self/own_command.h"
#include "common/base/status_macros.h"
#include "common/kube/resource.h"

namespace gleaner::cli {
namespace {

// Reads NodeProfiles only for workers with several GPUs. Without access to them, the result says so.
ExplainedGpus read_gpus(ClusterAccess& access, const api::TrainingJob& job, const ExplainedJob& explained) {
  const double gpus = gpus_of_worker(job.workers);
  if (gpus < 2) return {};
  return explain_gpus(explained, gpus, access.list_as(kube::node_profiles(), "", api::parse_node_profile));
}

}  // namespace

absl::Status run_explain(const ClusterFlags& flags) {
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags));
  GLN_ASSIGN_OR_RETURN(const api::TrainingJob job, access->job(flags.job));
  GLN_ASSIGN_OR_RETURN(std::optional<api::ReductionPlan> plan, access->plan(flags.job));
  if (!plan) {
    return absl::FailedPreconditionError(
        absl::StrCat("TrainingJob ", job.meta.key(), " has no plan yet; it is ",
                     job.status.phase.empty() ? "not handled by an operator yet" : job.status.phase, ". `",
                     own_command("plan "), flags.job, " --bytes N` shows the plan that it would get"));
  }
  auto explained = explain_job(*std::move(plan), job.workers.local_ranks);
  if (!explained.ok()) {
    return absl::Status(explained.status().code(),
                        absl::StrCat("TrainingJob ", job.meta.key(), ": ", explained.status().message()));
  }
  const ExplainedGpus gpus = read_gpus(*access, job, *explained);
  count_uplinks(read_fabric(*access), *explained);
  if (flags.output == "json") {
    nlohmann::json object = to_json(*explained);
    object["gradients"] = gradients_json(job.communication);
    object["gpus"] = to_json(gpus);
    object["autoscaler"] = to_json(job.status.summers);
    return print(absl::StrCat(object.dump(2), "\n"));
  }
  return print(absl::StrCat(to_text(*explained), gradients_text(job.communication, explained->plan.spec), to_text(gpus),
                            autoscaler_text(job.status.summers, absl::Now())));
}

}  // namespace gleaner::cli
