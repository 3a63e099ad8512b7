#include "operator/reconcile/rank_environment.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/variable.h"

namespace gleaner::reconcile {
namespace {

using nlohmann::json;

constexpr char kMasterPort[] = "29500";  // the default of torchrun
constexpr size_t kUidCharacters = 8;

std::string number_key(uint32_t index) { return absl::StrCat(kWorker, "-", index); }

// Returns the variable with the number of a worker.
json number_variable(const char* name, const api::TrainingJob& job, uint32_t index) {
  const bool is_known = job.workers.replicas == 1 || job.communication.rank_map == api::RankOrder::kIdentity;
  if (is_known) return variable(name, absl::StrCat(index));
  const json reference = {{"name", rank_map_object_name(job)}, {"key", number_key(index)}};
  return {{"name", name}, {"valueFrom", {{"configMapKeyRef", reference}}}};
}

// Returns the host name of worker 0, which has rank 0, below the job's Service. A job of one worker has no Service.
std::string address_of_rank_0(const api::TrainingJob& job) {
  if (job.workers.replicas == 1) return "localhost";
  return absl::StrCat(pod_name(job.meta.name, kWorker, 0, 0), ".", job.meta.name);
}

}  // namespace

std::string rank_map_object_name(const api::TrainingJob& job) {
  return absl::StrCat(job.meta.name, "-ranks-", job.meta.uid.substr(0, kUidCharacters), "-", job.status.attempt);
}

json rank_map_object(const api::TrainingJob& job, const api::RankMap& map) {
  json data;
  for (uint32_t number = 0; number < job.workers.replicas; ++number) {
    data[number_key(map.index_of(number))] = absl::StrCat(number);
  }
  return {{"apiVersion", "v1"},
          {"kind", "ConfigMap"},
          {"metadata",
           {{"name", rank_map_object_name(job)},
            {"namespace", job.meta.ns},
            {"labels", {{api::kJobLabel, job.meta.name}, {kManagedByLabel, kManagedBy}}},
            {"ownerReferences", owner_references(job)}}},
          {"immutable", true},
          {"data", std::move(data)}};
}

bool waits_for_rank(const api::TrainingJob& job, const PodView& pod) {
  return absl::StrContains(pod.obstacles.waiting_message, rank_map_object_name(job));
}

void add_rank_variables(const api::TrainingJob& job, uint32_t index, json& environment) {
  const api::Workers& workers = job.workers;
  const std::string master = address_of_rank_0(job);
  if (workers.local_ranks == 1) {
    environment.push_back(number_variable("RANK", job, index));
    environment.push_back(variable("LOCAL_RANK", "0"));
  }
  environment.push_back(variable("WORLD_SIZE", absl::StrCat(workers.replicas * workers.local_ranks)));
  environment.push_back(variable("LOCAL_WORLD_SIZE", absl::StrCat(workers.local_ranks)));
  environment.push_back(variable("MASTER_ADDR", master));
  environment.push_back(variable("MASTER_PORT", kMasterPort));
  // torchrun takes these as defaults of its flags.
  environment.push_back(variable("PET_NNODES", absl::StrCat(workers.replicas)));
  environment.push_back(variable("PET_NPROC_PER_NODE", absl::StrCat(workers.local_ranks)));
  environment.push_back(number_variable("PET_NODE_RANK", job, index));
  environment.push_back(variable("PET_MASTER_ADDR", master));
  environment.push_back(variable("PET_MASTER_PORT", kMasterPort));
}

}  // namespace gleaner::reconcile
