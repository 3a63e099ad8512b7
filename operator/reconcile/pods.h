// Functions that build the pods of a job as the operator sends them to the API server. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "common/api/training_job.h"
#include "common/placement/placement.h"

namespace gleaner::reconcile {

// The operator's options that determine a job's pods.
struct PodSettings {
  std::string coordinator;            // HOST:PORT at which pods reach the coordinator
  std::string summer_image;           // image that contains gleaner-summer
  std::string summer_priority_class;  // PriorityClass; empty: the cluster's default
  double min_gain = 0.01;             // share of the step time that each summer must save for a job to begin with it
  std::string shm_host_path;          // directory of every machine that the pods of one job share; empty: none
  std::string rdma_resource;          // extended resource of RDMA devices; empty: none
  // A summer leaves its machine if other processes use more than this share of the processors' time and almost none is
  // idle; 0: it never leaves for that reason.
  double summer_yield_above = 0;
};

// Returns the pod of worker `index` of this attempt: the user's template with identity, bootstrap and name added. The
// workers of a job with several wait at the scheduling gate kGangGate until all of their pods exist, and prefer nodes
// near each other's: with the same labels of `levels`, which are widest first. Narrow levels weigh more.
absl::StatusOr<nlohmann::json> worker_pod(const api::TrainingJob& job, uint32_t index, const PodSettings& settings,
                                          const placement::LabelLevels& levels = {});

// Returns the pod of summer `index` for the candidate's machine. The scheduler prefers that machine but may choose
// another. Bandwidth annotations limit the summer's link, where the cluster's network plugin enforces them.
nlohmann::json summer_pod(const api::TrainingJob& job, uint32_t index, const placement::Candidate& candidate,
                          const PodSettings& settings);

// Returns the ResourceRequirements of a summer's container: those of the job, with defaults added.
nlohmann::json summer_resources(const api::TrainingJob& job);

// Returns the headless Service that gives workers their DNS names, JOB-worker-I.JOB.
nlohmann::json worker_service(const api::TrainingJob& job);

// Returns "namespace/name/attempt" for the attempt in job.status.
std::string session_of(const api::TrainingJob& job);

}  // namespace gleaner::reconcile
