#include "absl/strings/str_cat.h"
#include "cli/cluster/access.h"
#include "cli/cluster/actions.h"
#include "cli/cluster/job_plan.h"
#include "cli/cluster/machines.h"
#include "cli/plan_output.h"
#include "cli/tensor_list.h"
#include "common/base/status_macros.h"
#include "common/plan/explain.h"
#include "common/plan/explain_uplinks.h"

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

// Prints the plan of machines that uplinks of known bandwidth part.
absl::Status print_network_plan(const PlanFlags& flags, const api::TrainingJob& job, const JobFleet& fleet,
                                std::vector<plan::Tensor> tensors, const PlanContext& context) {
  const uint32_t n = fleet.fleet.n(), k = fleet.fleet.k();
  GLN_ASSIGN_OR_RETURN(const plan::LinkLoads loads, plan::link_loads(*fleet.network, n, k));
  GLN_ASSIGN_OR_RETURN(const plan::UplinkBound bound,
                       plan::bound_with_uplinks(*fleet.network, loads, n, k, total_bytes(tensors)));
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan,
                       plan_of(flags, fleet.fleet, std::move(tensors), job.workers.local_ranks, bound.shares));
  plan::Explanation explanation = plan::explain(plan);
  GLN_RETURN_IF_ERROR(plan::explain_uplinks(*fleet.network, loads, bound, plan, explanation));
  return print_plan(flags, plan, std::move(explanation), context);
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
  GLN_ASSIGN_OR_RETURN(const fabric::Fabric fabric, read_fabric(*access));
  GLN_ASSIGN_OR_RETURN(const JobFleet fleet, fleet_for(job, machines.fleet, fabric, machines.pods, access->now()));
  const PlanContext context{.head = to_text(job, fleet), .nodes = fleet.nodes};
  if (fleet.network.has_value()) return print_network_plan(flags, job, fleet, std::move(tensors), context);
  GLN_ASSIGN_OR_RETURN(const plan::Plan plan, plan_of(flags, fleet.fleet, std::move(tensors), job.workers.local_ranks));
  return print_plan(flags, plan, plan::explain(plan), context);
}

}  // namespace gleaner::cli
