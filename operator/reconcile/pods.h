// The pods of a job, as they are sent to the API server. Pure.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "operator/placement/placement.h"
#include "operator/types/training_job.h"

namespace gleaner::reconcile {

// What the operator was told at its start and puts into pods.
struct Settings {
  std::string coordinator;            // HOST:PORT, as pods reach it
  std::string summer_image;           // has gleaner-summer in it
  std::string summer_priority_class;  // empty: the cluster's default
  double worth = 0.01;                // share of a step that one more summer must buy, when a job begins
  std::string shm_host_path;          // directory of each machine that pods of one job share; empty: none
  std::string rdma_resource;          // extended resource that stands for an RDMA device; empty: none
  double summer_yield_above = 0;      // share of a machine's processors above which its owners have it; 0: never
};

// Worker `index` of this attempt: the user's template, with identity, bootstrap and name added. A gang of more than one
// waits at the scheduling gate kGangGate until all of it is there.
absl::StatusOr<nlohmann::json> worker_pod(const types::TrainingJob& job, uint32_t index, const Settings& settings);

// Summer `index`, meant for the candidate's machine: the scheduler is asked to prefer it, and may know better. What the
// summer may use of its link is enforced by the bandwidth annotations where the cluster's network plugin knows them.
nlohmann::json summer_pod(const types::TrainingJob& job, uint32_t index, const placement::Candidate& candidate,
                          const Settings& settings);

// ResourceRequirements of a summer's container: the job's, filled up.
nlohmann::json summer_resources(const types::TrainingJob& job);

// The headless Service that gives workers their names: JOB-worker-I.JOB.
nlohmann::json worker_service(const types::TrainingJob& job);

// "namespace/name/attempt" of the attempt that job.status is in.
std::string session_of(const types::TrainingJob& job);

}  // namespace gleaner::reconcile
