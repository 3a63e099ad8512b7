// ReductionPlan, gleaner.dev/v1alpha1, tells people and monitoring how many bytes of a job's gradients each member
// sums.
//
// crds/reductionplan.yaml is the only source of the schema. A ReductionPlan has the name and namespace of its
// TrainingJob and is owned by it. The partitions themselves reach the members over the coordinator's stream, not
// through the API server.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/api/meta.h"
#include "common/api/rank_map.h"

namespace gleaner::api {

struct PlanMember {
  std::string name;              // "worker-0", "summer-1"
  std::string role;              // worker | summer
  std::optional<uint32_t> rank;  // of a worker: that of its local rank 0
  std::string pod, node, address;
  // In order of preference: "shm:1f3a9c2b" (members with the same number share a directory), "tcp".
  std::vector<std::string> transports;
  double bits_per_second = 0;      // each way, as the plan assumes
  bool bandwidth_assumed = false;  // the link's speed is unknown; bits_per_second is a placeholder
  uint64_t owned_bytes = 0;        // bytes per step that the member sums
  uint64_t traffic_bytes = 0;      // bytes per step that the member sends or receives, whichever is more
  bool binds = false;              // the link of this member takes longest of all
  uint32_t acknowledged_epoch = 0;
  // For a summer with which steps take longer than without it: the figures. Empty: it is not slow.
  std::string slow;
  bool operator==(const PlanMember&) const = default;
};

// The tensors that one strategy sums.
struct PlanStrategy {
  std::string strategy;  // "summers", "ring", "blueconnect 3,2,2"
  uint64_t tensors = 0;
  uint64_t bytes = 0;  // of these tensors together
  bool operator==(const PlanStrategy&) const = default;
};

// The parameters of a schedule of a collective between the workers.
struct PlanSchedule {
  std::string algorithm;
  std::vector<uint32_t> stages;  // empty: the default of the algorithm
  uint32_t radix = 0;            // 0: the default of the algorithm
  std::vector<uint32_t> ranks;   // by worker: its rank in the schedule; empty: worker i has rank i, or not written
  bool operator==(const PlanSchedule&) const = default;
};

// The gain or loss of the other class of bits (coordinator::OtherBits).
struct PlanOtherBits {
  std::string bits;      // "RankOrder" or "Schedule"
  std::string strategy;  // "summers, ring"
  double step_seconds = 0;
  double instead_of_seconds = 0;
  bool operator==(const PlanOtherBits&) const = default;
};

struct ReductionPlanSpec {
  uint32_t epoch = 0;
  uint32_t attempt = 0;
  std::string strategy;  // "summers, halving-doubling"; empty before the first tensor
  std::string bits;      // "RankOrder" or "Schedule"; empty before the first plan
  std::optional<PlanOtherBits> other_bits;
  std::vector<PlanStrategy> strategies;  // without tensors that accumulate
  std::vector<PlanSchedule> schedules;
  std::optional<RankMap> rank_map;  // without `workers`, since the members are in the order of ranks
  uint64_t tensors = 0, partitions = 0, bytes_per_step = 0;
  uint64_t push_bytes_per_step = 0;          // bytes that a worker contributes to the sums of a step
  uint64_t dense_bytes_per_step = 0;         // bytes_per_step without compression and sparse communication
  double bound_seconds = 0;                  // 0: unknown, or nothing moves
  double bound_without_summers_seconds = 0;  // the bound with k = 0
  std::vector<PlanMember> members;           // in plan order: workers, then summers
  bool operator==(const ReductionPlanSpec&) const = default;
};

struct ReductionPlanStatus {
  uint32_t acknowledged = 0;  // number of members that acknowledged spec.epoch
  uint32_t committed_epoch = 0;
  uint64_t steps = 0;
  // These figures are of the steps that ended within the last minute. Efficiency compares each step with the bound of
  // the plan that was in force when the step ran.
  double step_communication_seconds = 0;  // mean time of a step
  double goodput_bytes_per_second = 0;    // gradient bytes reduced per second and worker
  double efficiency = 0;                  // bound / measured; 0 unless the basis is "bandwidth"
  std::string packs;                      // coordinator::describe() of the packs that rank 0 has chosen; empty: none
  std::string efficiency_basis;           // coordinator::to_string(Basis); empty if the operator did not report it
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
nlohmann::json to_json(const ReductionPlanStatus& status);  // contents of "status"

}  // namespace gleaner::api
