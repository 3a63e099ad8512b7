#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/actions.h"
#include "cli/cluster/job_plan.h"
#include "cli/cluster/machines.h"
#include "cli/plan_output.h"
#include "cli/tensor_list.h"
#include "common/base/status_macros.h"
#include "common/plan/explain.h"

namespace gleaner::cli {
namespace {

// Returns the tensors of a step: those of the flags, or else one tensor with as many bytes as the job's workers
// declared in their last run.
absl::StatusOr<std::vector<plan::Tensor>> tensors_of_job(const PlanFlags& flags, ClusterAccess& access) {
  if (!flags.tensors.file.empty() || !flags.tensors.bytes.empty()) return tensors_of(flags.tensors);
  GLN_ASSIGN_OR_RETURN(const std::optional<api::ReductionPlan> plan, access.plan(flags.cluster.job));
  if (!plan || plan->spec.bytes_per_step == 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("TrainingJob ", access.ns(), "/", flags.cluster.job,
                     " has declared no tensors yet: give the tensors of a step by --bytes N or --tensors FILE"));
  }
  return one_tensor(absl::StrCat(plan->spec.bytes_per_step));
}

}  // namespace

absl::Status run_job_plan(const PlanFlags& flags) {
  GLN_RETURN_IF_ERROR(check(flags));
  if (flags.workers >= 0 || flags.summers >= 0 || flags.local_ranks > 1 || !flags.bandwidths.each.empty() ||
      !flags.bandwidths.workers.empty() || !flags.bandwidths.summers.empty() || !flags.topology.text.empty()) {
    return absl::InvalidArgumentError("give either JOB or numbers: the machines of JOB come from the cluster");
  }
  GLN_ASSIGN_OR_RETURN(const auto access, ClusterAccess::open(flags.cluster));
  GLN_ASSIGN_OR_RETURN(const api::TrainingJob job, access->job(flags.cluster.job));
  GLN_ASSIGN_OR_RETURN(std::vector<plan::Tensor> tensors, tensors_of_job(flags, *access));
  GLN_ASSIGN_OR_RETURN(const ReadMachines machines, read_machines(*access));
  GLN_ASSIGN_OR_RETURN(const JobFleet fleet, fleet_for(job, machines.fleet, machines.pods, access->now()));
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan, plan_of(flags, fleet.fleet, std::move(tensors), job.workers.local_ranks));
  return print_plan(flags, plan, plan::explain(plan), {.head = to_text(job, fleet), .nodes = fleet.nodes});
}

}  // namespace gleaner::cli
