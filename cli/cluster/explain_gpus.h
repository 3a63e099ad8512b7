// Makes the section of `gleaner explain` about workers with several GPUs: the best way of their gradients inside a
// machine, and the way that Gleaner goes today, by the model of common/machine. Pure.
//
// The machines are those of the nodes' NodeProfiles. A step has the job's bytes, and a NIC carries the worker's traffic
// of the plan.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/cluster/explain_view.h"
#include "common/api/node_profile.h"
#include "common/api/training_job.h"
#include "common/machine/choice.h"

namespace gleaner::cli {

// Workers whose machines have the same devices at the same places. Bandwidths of NICs are compared by two digits, since
// measured ones of equal NICs differ.
struct AlikeMachines {
  std::vector<std::string> workers;
  machine::Machine machine;  // that of the first worker
  machine::Choice choice;
};

struct ExplainedGpus {
  double gpus_of_worker = 0;
  std::vector<AlikeMachines> alike;
  std::vector<std::string> left_out;  // "worker-2: there is no NodeProfile of n2"
  std::string unread;                 // why NodeProfiles could not be read; empty: they were
  bool is_empty() const { return alike.empty() && unread.empty(); }
};

// Returns the number of GPUs that each worker uses: its nvidia.com/gpu, or the number of its local ranks if it requests
// none, since other devices have other names.
double gpus_of_worker(const api::Workers& workers);

// Returns an empty result if no worker's profile has two GPUs or more.
ExplainedGpus explain_gpus(const ExplainedJob& job, double gpus_of_worker,
                           const absl::StatusOr<std::vector<api::NodeProfile>>& profiles);

// Returns the lines of the section; empty if the result is.
std::string to_text(const ExplainedGpus& gpus);
// Returns null if the result is empty.
nlohmann::json to_json(const ExplainedGpus& gpus);

}  // namespace gleaner::cli
