// TrainingJob, gleaner.dev/v1alpha1, as the operator, the scheduler extender and the command line see it.
//
// crds/trainingjob.yaml is the schema's only source: it has the meaning, unit and default of every field; names here
// are the same, in snake_case. Values are plain data. parse() accepts what the API server admits (defaults are filled
// in by it, and again here), and says which field is wrong otherwise; to_json() writes what parse() reads.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "operator/types/meta.h"

namespace gleaner::types {

// The schema's limits.
inline constexpr int64_t kMaxReplicas = 4096;  // so that a ReductionPlan with all members fits into an object
inline constexpr int64_t kMaxLocalRanks = 64;
inline constexpr int64_t kMaxSummers = 512;
inline constexpr int64_t kMaxBackoff = 10000;
inline constexpr double kMinPartitionBytes = 4096, kMaxPartitionBytes = 4 << 20;

enum class Strategy { kAuto, kColocated };  // Auto: as many summers as help; Colocated: none (k = 0)
enum class Transport { kAuto, kTcp, kShm, kRdma };
enum class CleanPodPolicy { kNone, kRunning, kAll };

struct Workers {
  uint32_t replicas = 1;
  uint32_t local_ranks = 1;
  nlohmann::json pod_template;  // a corev1 PodTemplateSpec, as the user wrote it
  bool operator==(const Workers&) const = default;
};

struct SummersWanted {
  uint32_t min = 0;
  uint32_t max = 0;            // 0: none
  nlohmann::json resources;    // corev1 ResourceRequirements of a summer's container
  double bits_per_second = 0;  // most that one summer may use each way; 0: what its machine has to spare
  bool operator==(const SummersWanted&) const = default;
};

struct Communication {
  Strategy strategy = Strategy::kAuto;
  Transport transport = Transport::kAuto;
  uint64_t partition_bytes = 0;  // 0: chosen from the bandwidth
  SummersWanted summers;
  bool operator==(const Communication&) const = default;
};

struct RunPolicy {
  uint32_t backoff_limit = 3;  // restarts before the job fails
  std::optional<absl::Duration> active_deadline;
  absl::Duration start_deadline = absl::Minutes(10);  // until all workers run; then all are released and tried again
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  std::optional<absl::Duration> ttl_after_finished;
  bool suspend = false;
  bool operator==(const RunPolicy&) const = default;
};

// How many summers the autoscaler wants, and why.
struct SummersStatus {
  uint32_t wanted = 0;
  uint32_t had = 0;         // in the plan in force
  std::string reason;       // CamelCase; empty: nothing was said yet
  std::string message;      // one sentence
  std::string last_change;  // the last summer that was added or removed, and why
  std::optional<absl::Time> last_change_time;
  bool operator==(const SummersStatus&) const = default;
};

struct TrainingJobStatus {
  int64_t observed_generation = 0;
  std::string phase;  // Pending, Starting, Running, Restarting, Suspended, Succeeded, Failed: from the conditions
  std::vector<Condition> conditions;  // Created, Running, Stalled, Restarting, Suspended, Succeeded, Failed
  uint32_t workers_wanted = 0;        // replicas
  uint32_t workers_ready = 0;         // running
  uint32_t workers_succeeded = 0;
  uint32_t workers_failed = 0;
  uint32_t summers_ready = 0;
  SummersStatus summers;
  uint32_t next_summer = 0;  // index of the next summer of this attempt: none is used twice
  std::string selector;      // of the worker pods, for the scale subresource
  uint32_t attempt = 0;      // which set of pods this is: grows with every restart, resume and release
  uint32_t restarts = 0;     // failures of the job's own pods so far, compared with backoffLimit
  uint32_t epoch = 0;        // of the plan in force
  // "59.6 ms", a step's communication at best under the plan in force; "unknown" where a link's speed is not known;
  // empty before there is a plan with tensors.
  std::string bound;
  std::string goodput;     // of the last minute: "12.3 MB/s" of gradient per worker
  std::string efficiency;  // of the last minute: "97.2 %", bound / measured, or "latency-bound", or "unknown"
  std::optional<absl::Time> start_time;  // of the first attempt's pods' creation; cleared by suspension
  std::optional<absl::Time> completion_time;
  bool operator==(const TrainingJobStatus&) const = default;
};

struct TrainingJob {
  ObjectMeta meta;
  Workers workers;
  Communication communication;
  RunPolicy run_policy;
  TrainingJobStatus status;
  bool operator==(const TrainingJob&) const = default;
};

absl::StatusOr<TrainingJob> parse_training_job(const nlohmann::json& object);
nlohmann::json to_json(const TrainingJob& job);           // apiVersion, kind, metadata, spec, status
nlohmann::json to_json(const TrainingJobStatus& status);  // what goes under "status"

}  // namespace gleaner::types
