#include "cli/cluster/job_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "cli/self/own_command.h"
#include "common/api/meta.h"
#include "common/api/pod.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/base/units.h"
#include "common/fabric/network.h"
#include "common/fabric/step_bound.h"
#include "operator/reconcile/summer_choice.h"
#include "operator/reconcile/summers.h"
#include "operator/reconcile/worker_nics.h"

namespace gleaner::cli {
namespace {

using placement::Machine;
using Machines = std::vector<std::shared_ptr<const Machine>>;

constexpr size_t kRefusalsShown = 5;

// Returns the speed of a worker of the job on this machine; 0: unknown.
double speed_of(const Machine* machine, const std::vector<std::string>& rdma_devices) {
  if (machine == nullptr || machine->profile == nullptr) return 0;
  const api::NodeProfileStatus& profile = machine->profile->status;
  return reconcile::worker_bits_per_second(rdma_devices, reconcile::rdma_speeds(profile), profile.bits_per_second);
}

double lower_known(double one, double other) {
  if (one <= 0) return other;
  return other <= 0 ? one : std::min(one, other);
}

// Returns the median speed of a worker on the machines that take pods; 0 if no speed is known.
double median_speed(const Machines& machines, const std::vector<std::string>& rdma_devices) {
  std::vector<double> speeds;
  for (const auto& machine : machines) {
    const double speed = speed_of(machine.get(), rdma_devices);
    if (machine->schedulable && speed > 0) speeds.push_back(speed);
  }
  return upper_median(std::move(speeds));
}

// Returns the job's worker pods that have not finished, by index; null where there is none.
std::vector<const placement::Pod*> workers_of(const api::TrainingJob& job, const std::vector<placement::Pod>& pods) {
  std::vector<const placement::Pod*> workers(job.workers.replicas);
  for (const placement::Pod& pod : pods) {
    if (pod.job != job.meta.key() || pod.role != "worker" || pod.finished) continue;
    // Names are "digits-worker-3", or "digits-worker-3-r1" in attempt 1.
    const std::string prefix = absl::StrCat(job.meta.key(), "-worker-");
    if (pod.key.rfind(prefix, 0) != 0) continue;
    uint32_t index = 0;
    const std::string rest = pod.key.substr(prefix.size());
    if (absl::SimpleAtoi(rest.substr(0, rest.find('-')), &index) && index < workers.size()) workers[index] = &pod;
  }
  return workers;
}

double template_limit(const api::TrainingJob& job) {
  const auto meta = api::parse_meta(job.workers.pod_template);
  return meta.ok() ? api::bandwidth_limit(*meta) : 0;
}

// Returns copies of the machines without this job's summers: the plan chooses the summers again, so the resources of
// the present ones are free for it.
Machines without_summers_of(const api::TrainingJob& job, const std::vector<placement::Pod>& pods, Machines machines) {
  for (auto& machine : machines) {
    auto freed = std::make_shared<Machine>(*machine);
    for (const placement::Pod& pod : pods) {
      if (pod.job != job.meta.key() || pod.role != "summer" || pod.node != machine->name || pod.finished) continue;
      freed->commitment.summers -= std::min(1u, freed->commitment.summers);
      freed->commitment.summer_cpus = std::max(0.0, freed->commitment.summer_cpus - pod.cpus);
      freed->commitment.summer_bits_per_second =
          std::max(0.0, freed->commitment.summer_bits_per_second - pod.bits_per_second);
    }
    machine = std::move(freed);
  }
  return machines;
}

// Adds the summers that the operator would choose, and the reasons for which machines can take none.
void add_summers(const api::TrainingJob& job, const placement::Fleet& cluster, const fabric::Fabric& fabric,
                 const Machines& machines, absl::Time now, JobFleet& result) {
  const placement::SummerRequest request = reconcile::summer_request(job, cluster.worker_nodes(job.meta.key()));
  std::vector<const Machine*> pointers;
  for (const auto& machine : machines) {
    pointers.push_back(machine.get());
    const placement::Verdict verdict = placement::judge_summer(*machine, request, now);
    if (!verdict.fits) result.refusals.push_back(absl::StrCat(machine->name, ": ", verdict.refusal.why_not));
  }
  std::sort(result.refusals.begin(), result.refusals.end());
  for (const placement::Candidate& summer : reconcile::choose_summers(
           job, fabric, {result.fleet, result.nodes}, placement::summer_candidates(pointers, request, now))) {
    result.fleet.summer_bits_per_second.push_back(summer.bits_per_second);
    result.nodes.push_back(summer.node);
  }
}

absl::StatusOr<topology::Topology> network_of(const fabric::Fabric& fabric, const JobFleet& fleet) {
  std::vector<fabric::Host> hosts;
  const uint32_t n = fleet.fleet.n();
  for (uint32_t i = 0; i < fleet.nodes.size(); ++i) {
    const std::string name = i < n ? absl::StrCat("worker-", i) : absl::StrCat("summer-", i - n);
    hosts.push_back({name, fleet.nodes[i], fleet.fleet.bits_per_second(i)});
  }
  return fabric::network_of(fabric, hosts);
}

}  // namespace

absl::StatusOr<JobFleet> fleet_for(const api::TrainingJob& job, const placement::Fleet& cluster,
                                   const fabric::Fabric& fabric, const std::vector<placement::Pod>& pods,
                                   absl::Time now) {
  const Machines machines = without_summers_of(job, pods, cluster.machines());
  JobFleet result;
  const std::vector<std::string> rdma_devices = reconcile::rdma_devices_of(job);
  result.assumed_bits_per_second = lower_known(template_limit(job), median_speed(machines, rdma_devices));
  for (const placement::Pod* worker : workers_of(job, pods)) {
    double known = 0;
    if (worker != nullptr && !worker->node.empty()) {
      known = lower_known(worker->bits_per_second, speed_of(cluster.machine(worker->node).get(), rdma_devices));
    }
    if (known <= 0) ++result.assumed;
    result.fleet.worker_bits_per_second.push_back(known > 0 ? known : result.assumed_bits_per_second);
    result.nodes.push_back(worker == nullptr ? "" : worker->node);
  }
  if (result.assumed > 0 && result.assumed_bits_per_second <= 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("no NodeProfile has the speed of a machine's network: are the agents running? `",
                     own_command("top"), "` shows what they say"));
  }
  if (reconcile::wants_summers(job)) add_summers(job, cluster, fabric, machines, now, result);
  if (has_known_uplinks(fabric, result.nodes)) {
    GLN_ASSIGN_OR_RETURN(result.network, network_of(fabric, result));
  }
  return result;
}

std::string to_text(const api::TrainingJob& job, const JobFleet& fleet) {
  std::string text = absl::StrCat("TrainingJob ", job.meta.key(), ", with the spare resources of the cluster now\n");
  const uint32_t n = fleet.fleet.n();
  for (size_t i = 0; i < fleet.nodes.size(); ++i) {
    if (fleet.nodes[i].empty()) continue;
    absl::StrAppend(&text, i < n ? absl::StrCat("worker/", i) : absl::StrCat("summer/", i - n), " on ", fleet.nodes[i],
                    "\n");
  }
  if (fleet.assumed > 0) {
    absl::StrAppend(&text, "Workers on no machine yet: ", fleet.assumed, ", assumed to have ",
                    format_bits_per_second(fleet.assumed_bits_per_second), " each\n");
  }
  if (!reconcile::wants_summers(job)) {
    absl::StrAppend(&text, "Summers: none; ",
                    job.workers.replicas < 2 ? "one worker needs none"
                    : api::uses_summers(job.communication.strategy)
                        ? "communication.summers.max is 0"
                        : absl::StrCat("the strategy is ", api::to_string(job.communication.strategy)),
                    "\n");
  } else if (fleet.fleet.k() < job.communication.summers.max) {
    absl::StrAppend(&text, "Summers: ", fleet.fleet.k(), " of at most ", job.communication.summers.max,
                    ": one more would not help, or no machine can take it\n");
    for (size_t i = 0; i < std::min(kRefusalsShown, fleet.refusals.size()); ++i) {
      absl::StrAppend(&text, "  not on ", fleet.refusals[i], "\n");
    }
    if (fleet.refusals.size() > kRefusalsShown) {
      absl::StrAppend(&text, "  and ", fleet.refusals.size() - kRefusalsShown, " more\n");
    }
  }
  return absl::StrCat(text, "\n");
}

}  // namespace gleaner::cli
