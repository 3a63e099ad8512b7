// ReductionPlan, gleaner.dev/v1alpha1: who sums how much of a job's gradients, for people and for what watches them.
//
// crds/reductionplan.yaml is the schema's only source. Same name and namespace as its TrainingJob, owned by it. The
// partitions themselves go to the members over the coordinator's stream, not through the API server.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/types/meta.h"

namespace gleaner::types {

struct PlanMember {
  std::string name;  // "worker-0", "summer-1"
  std::string role;  // worker | summer
  std::string pod, node, address;
  std::vector<std::string> transports;  // in order of preference: "shm:1f3a9c2b" (the directory it shares), "tcp"
  double bits_per_second = 0;           // each way, as planned with
  bool bandwidth_assumed = false;       // nobody knows how fast its link is: bits_per_second stands in for that
  uint64_t owned_bytes = 0;             // of a step
  uint64_t traffic_bytes = 0;           // each way and step
  bool binds = false;                   // this machine's link is what a step waits for
  uint32_t acknowledged_epoch = 0;
  bool operator==(const PlanMember&) const = default;
};

struct ReductionPlanSpec {
  uint32_t epoch = 0;
  uint32_t attempt = 0;
  uint64_t tensors = 0, partitions = 0, bytes_per_step = 0;
  double bound_seconds = 0;                  // a step's communication at best; 0: not known, or nothing moves
  double bound_without_summers_seconds = 0;  // the same with k = 0
  std::vector<PlanMember> members;           // plan order: workers, then summers
  bool operator==(const ReductionPlanSpec&) const = default;
};

struct ReductionPlanStatus {
  uint32_t acknowledged = 0;  // members that acknowledged spec.epoch
  uint32_t committed_epoch = 0;
  uint64_t steps = 0;
  // Of the steps that ended within the last minute, each beside the bound of the plan in force then.
  double step_communication_seconds = 0;  // measured
  double goodput_bytes_per_second = 0;    // gradient bytes reduced per second and worker
  double efficiency = 0;                  // bound / measured; 0 unless the basis is "bandwidth"
  std::string efficiency_basis;           // coordinator::to_string(Basis); empty: of an operator that did not tell
  bool operator==(const ReductionPlanStatus&) const = default;
};

struct ReductionPlan {
  ObjectMeta meta;
  ReductionPlanSpec spec;
  ReductionPlanStatus status;
  bool operator==(const ReductionPlan&) const = default;
};

absl::StatusOr<ReductionPlan> parse_reduction_plan(const nlohmann::json& object);
nlohmann::json to_json(const ReductionPlan& plan);          // apiVersion, kind, metadata, spec, status
nlohmann::json to_json(const ReductionPlanStatus& status);  // what goes under "status"

}  // namespace gleaner::types
