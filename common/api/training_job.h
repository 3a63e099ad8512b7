// TrainingJob, gleaner.dev/v1alpha1, as plain values, for the operator, the scheduler extender and the command line.
//
// crds/trainingjob.yaml is the only source of the schema. It has the meaning, unit and default of every field; names
// here are the same in snake_case. parse_training_job() accepts every job that the API server admits, and fills in
// missing defaults. Its error names the wrong field. to_json() writes the form that parse_training_job() reads.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/api/meta.h"
#include "common/api/rank_map.h"

namespace gleaner::api {

// The schema's limits.
inline constexpr int64_t kMaxReplicas = 4096;  // a ReductionPlan with all members still fits into one object
inline constexpr int64_t kMaxLocalRanks = 64;
inline constexpr int64_t kMaxSummers = 512;
inline constexpr int64_t kMaxStages = 12;  // 2^12 is kMaxReplicas
inline constexpr int64_t kMaxBackoff = 10000;
inline constexpr double kMinPartitionBytes = 4096, kMaxPartitionBytes = 4 << 20;
// Communication::fusion_bytes of "Max": all gradients are sent together, and of "Auto": the ranks choose. Both are
// above every size that a schema's integer has.
inline constexpr uint64_t kFuseAll = std::numeric_limits<uint64_t>::max();
inline constexpr uint64_t kFuseAuto = kFuseAll - 1;

// How a job sums its tensors. Auto: each tensor by the strategy that is fastest for its size; Colocated: by the summers
// in the workers alone (k = 0); Summers: by summers; the others: by the schedule of this algorithm.
enum class Strategy {
  kAuto,
  kColocated,
  kSummers,
  kRing,
  kHalvingDoubling,
  kDoubleTree,
  kBCube,
  kBlueConnect,
  kTwoLevel,
  kRacks,
  kGather
};
// The class of the bits of a job's sums. RankOrder: those of sums in rank order, whatever strategies sum the tensors;
// Schedule: those of each strategy.
enum class Bits { kRankOrder, kSchedule };
// The type in which scripts send gradients if they choose none. None: the job chooses none either.
enum class Compression { kNone, kFp16, kBf16, kInt8, kDithering, kOneBit, kTopK, kRandomK };
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
  uint32_t max = 0;            // 0: no summers
  nlohmann::json resources;    // corev1 ResourceRequirements of a summer's container
  double bits_per_second = 0;  // limit of one summer each way; 0: the spare bandwidth of its machine
  bool operator==(const SummersWanted&) const = default;
};

struct Communication {
  Strategy strategy = Strategy::kAuto;
  std::vector<uint32_t> stages;  // of BlueConnect, TwoLevel and Racks; empty: the default of the algorithm
  uint32_t radix = 0;            // of BCube; 0: the default of the algorithm
  std::optional<Bits> bits;      // none: RankOrder for Auto, else the class of the strategy
  RankOrder rank_map = RankOrder::kTopology;
  Transport transport = Transport::kAuto;
  uint64_t partition_bytes = 0;  // 0: chosen from the bandwidths
  Compression compression = Compression::kNone;
  uint64_t fusion_bytes = 0;  // gradients of at most this size are sent in packs; 0: the job chooses no size
  SummersWanted summers;
  bool operator==(const Communication&) const = default;
};

struct RunPolicy {
  uint32_t backoff_limit = 3;  // number of counted restarts before the job fails
  std::optional<absl::Duration> active_deadline;
  // If not all workers run within this time, all are released and started again later.
  absl::Duration start_deadline = absl::Minutes(10);
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  std::optional<absl::Duration> ttl_after_finished;
  bool suspend = false;
  bool operator==(const RunPolicy&) const = default;
};

// The number of summers that the autoscaler wants, and the reason.
struct SummersStatus {
  uint32_t wanted = 0;
  uint32_t had = 0;         // number of summers in the plan in force
  std::string reason;       // CamelCase; empty: the autoscaler has not decided yet
  std::string message;      // one sentence
  std::string last_change;  // the summer that was last added or removed, and why
  std::optional<absl::Time> last_change_time;
  bool operator==(const SummersStatus&) const = default;
};

// How the job's workers exchange gradients; the texts are for people. JSON has these fields in the status itself.
struct CommunicationStatus {
  std::optional<RankMap> rank_map;  // none: no attempt of several workers has had its machines yet
  // The strategies that sum tensors of the plan in force: "summers, halving-doubling". Empty before the first tensor.
  std::string strategy;
  std::string bits;  // the class of the bits of all sums: "RankOrder" or "Schedule"; empty before the first plan
  // The bound of the plan in force, for example "59.6 ms"; "unknown" if a link's speed is unknown; empty before there
  // is a plan with tensors.
  std::string bound;
  std::string goodput;     // of the last minute: "12.3 MB/s"
  std::string efficiency;  // of the last minute: "97.2 %", "latency-bound" or "unknown"
  bool operator==(const CommunicationStatus&) const = default;
};

struct TrainingJobStatus {
  int64_t observed_generation = 0;
  // Follows from the conditions: Pending, Starting, Running, Restarting, Suspended, Succeeded or Failed.
  std::string phase;
  // Created, Running, Stalled, SummerSlow, SummersRefused, RanksOutdated, Restarting, Suspended, Succeeded, Failed,
  // ReconcileFailing
  std::vector<Condition> conditions;
  uint32_t workers_wanted = 0;  // spec.workers.replicas
  uint32_t workers_ready = 0;   // running
  uint32_t workers_succeeded = 0;
  // Indexes of this attempt's workers that have succeeded, ascending. They stay succeeded when their pods are deleted.
  std::vector<uint32_t> succeeded_indexes;
  uint32_t workers_failed = 0;
  uint32_t summers_ready = 0;
  SummersStatus summers;
  uint32_t next_summer = 0;  // index of the attempt's next summer; no index is used twice
  std::string selector;      // label selector of the worker pods, for the scale subresource
  uint32_t attempt = 0;      // number of the set of pods: grows with every restart, resume and release
  uint32_t restarts = 0;     // failures of the job's own pods so far; at most backoffLimit
  uint32_t retries = 0;      // attempts in a row, up to the current one, that follow an attempt without a good run
  uint32_t epoch = 0;        // epoch of the plan in force
  CommunicationStatus communication;
  // When the pods of the first attempt since the last suspension were created; suspension clears it.
  std::optional<absl::Time> start_time;
  // No pod of the attempt is created before this time. Absent: the attempt has begun.
  std::optional<absl::Time> next_start_time;
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

absl::string_view to_string(Strategy strategy);        // "HalvingDoubling", as in the schema
absl::string_view to_string(Bits bits);                // "RankOrder", as in the schema
absl::string_view to_string(Compression compression);  // "FP16", as in the schema
// Returns whether summers on other machines can take part in sums of this strategy.
bool uses_summers(Strategy strategy);

absl::StatusOr<TrainingJob> parse_training_job(const nlohmann::json& object);
nlohmann::json to_json(const TrainingJob& job);           // apiVersion, kind, metadata, spec, status
nlohmann::json to_json(const TrainingJobStatus& status);  // contents of "status"

}  // namespace gleaner::api
