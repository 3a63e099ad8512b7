// Compares the GPUs that each worker of a job requests with the number of its processes. Pure.
#pragma once

#include <string>

#include "common/api/training_job.h"

namespace gleaner::reconcile {

// The extended resource of NVIDIA's device plugin for whole GPUs.
inline constexpr char kGpuResource[] = "nvidia.com/gpu";

// Returns the number of nvidia.com/gpu that all containers of the template request together. Init containers do not
// count, since the training runs after them. A request that is no quantity counts as 0: the API server refuses it.
double requested_gpus(const nlohmann::json& pod_template);

// Returns a sentence that tells the user if workers.localRanks is not the number of GPUs that each worker requests.
// Empty: both are the same, or the template requests no nvidia.com/gpu, since other devices have other names. It is a
// hint only: one process may use several GPUs, and processes may share one.
std::string gpu_hint(const api::Workers& workers);

}  // namespace gleaner::reconcile
