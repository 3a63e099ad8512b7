#include "common/api/training_job.h"

#include "absl/strings/str_cat.h"
#include "common/api/fields.h"
#include "common/api/text.h"
#include "common/base/utf8.h"

namespace gleaner::api {
namespace {

using nlohmann::json;

constexpr std::pair<absl::string_view, Strategy> kStrategies[] = {{"Auto", Strategy::kAuto},
                                                                  {"Colocated", Strategy::kColocated},
                                                                  {"Summers", Strategy::kSummers},
                                                                  {"Ring", Strategy::kRing},
                                                                  {"HalvingDoubling", Strategy::kHalvingDoubling},
                                                                  {"DoubleTree", Strategy::kDoubleTree},
                                                                  {"BCube", Strategy::kBCube},
                                                                  {"BlueConnect", Strategy::kBlueConnect},
                                                                  {"TwoLevel", Strategy::kTwoLevel},
                                                                  {"Racks", Strategy::kRacks},
                                                                  {"Gather", Strategy::kGather}};
constexpr std::pair<absl::string_view, Bits> kBits[] = {{"RankOrder", Bits::kRankOrder}, {"Schedule", Bits::kSchedule}};
constexpr std::pair<absl::string_view, Compression> kCompressions[] = {
    {"None", Compression::kNone}, {"FP16", Compression::kFp16},           {"BF16", Compression::kBf16},
    {"Int8", Compression::kInt8}, {"Dithering", Compression::kDithering}, {"OneBit", Compression::kOneBit},
    {"TopK", Compression::kTopK}, {"RandomK", Compression::kRandomK}};
constexpr std::pair<absl::string_view, Transport> kTransports[] = {
    {"Auto", Transport::kAuto}, {"TCP", Transport::kTcp}, {"SHM", Transport::kShm}, {"RDMA", Transport::kRdma}};
constexpr std::pair<absl::string_view, CleanPodPolicy> kCleanPodPolicies[] = {
    {"None", CleanPodPolicy::kNone}, {"Running", CleanPodPolicy::kRunning}, {"All", CleanPodPolicy::kAll}};

// 2m is the smallest CPU request, which gives the container the kernel's smallest CPU weight.
json default_resources() { return {{"requests", {{"cpu", "2m"}, {"memory", "256Mi"}}}}; }

void read_workers(const Fields& fields, Workers& workers) {
  fields.number("replicas", workers.replicas, 1, kMaxReplicas);
  fields.number("localRanks", workers.local_ranks, 1, kMaxLocalRanks);
  fields.json_object("template", workers.pod_template);
  const json* containers = fields.object("template").object("spec").find("containers");
  if (containers == nullptr || !containers->is_array() || containers->empty()) {
    fields.fail("template.spec.containers", "expected a list of at least one container");
  }
}

// Checks only that the resources are quantities. They go into a summer's container as they are.
void check_resources(const Fields& fields) {
  for (const char* part : {"requests", "limits"}) {
    const json* found = fields.find(part);
    const Fields amounts = fields.object(part);
    if (!amounts.present()) continue;
    double amount = 0;
    for (const auto& resource : found->items()) amounts.quantity(resource.key(), amount);
  }
}

void read_summers(const Fields& fields, SummersWanted& summers) {
  fields.number("min", summers.min, 0, kMaxSummers);
  fields.number("max", summers.max, 0, kMaxSummers);
  fields.json_object("resources", summers.resources);
  check_resources(fields.object("resources"));
  fields.bandwidth("bandwidth", summers.bits_per_second);
  if (summers.min > summers.max) {
    fields.fail("min", absl::StrCat("expected at most max, which is ", summers.max, ", got ", summers.min));
  }
}

// Reads a whole number of bytes from `least` to `most`; `expected` names both limits. Absent: `bytes` stays as it is.
void read_bytes(const Fields& fields, const char* name, double least, double most, const char* expected,
                uint64_t& bytes) {
  double read = 0;
  fields.quantity(name, read);
  if (fields.find(name) == nullptr) return;
  const bool whole = read == static_cast<double>(whole_number(read));
  if (!whole || read < least || read > most) return fields.wrong(name, expected);
  bytes = static_cast<uint64_t>(whole_number(read));
}

void read_fusion(const Fields& fields, uint64_t& bytes) {
  if (const json* found = fields.find("fusion"); found != nullptr && (*found == "Max" || *found == "Auto")) {
    bytes = *found == "Max" ? kFuseAll : kFuseAuto;
    return;
  }
  read_bytes(fields, "fusion", 1, static_cast<double>(Fields::kMost),
             "a whole number of bytes above 0, such as \"4Mi\", \"Auto\" or \"Max\"", bytes);
}

void read_communication(const Fields& fields, Communication& communication) {
  fields.choice<Strategy>("strategy", kStrategies, communication.strategy);
  fields.numbers("stages", communication.stages, 1, kMaxReplicas);
  if (communication.stages.size() > kMaxStages) {
    fields.fail("stages", absl::StrCat("expected at most ", kMaxStages, " stages, got ", communication.stages.size()));
  }
  fields.number("radix", communication.radix, 2, kMaxReplicas);
  fields.choice<Bits>("bits", kBits, communication.bits);
  read_rank_order(fields, "rankMap", communication.rank_map);
  fields.choice<Transport>("transport", kTransports, communication.transport);
  read_bytes(fields, "partitionBytes", kMinPartitionBytes, kMaxPartitionBytes,
             "a whole number of bytes from 4Ki to 4Mi", communication.partition_bytes);
  fields.choice<Compression>("compression", kCompressions, communication.compression);
  read_fusion(fields, communication.fusion_bytes);
  read_summers(fields.object("summers"), communication.summers);
  if (communication.strategy == Strategy::kColocated && communication.summers.max > 0) {
    fields.fail("strategy", absl::StrCat("Colocated has no summers, and summers.max is ", communication.summers.max));
  }
}

void read_run_policy(const Fields& fields, RunPolicy& policy) {
  fields.number("backoffLimit", policy.backoff_limit, 0, kMaxBackoff);
  fields.seconds("activeDeadlineSeconds", 1, policy.active_deadline);
  fields.seconds("startDeadlineSeconds", 1, policy.start_deadline);
  fields.choice<CleanPodPolicy>("cleanPodPolicy", kCleanPodPolicies, policy.clean_pod_policy);
  fields.seconds("ttlSecondsAfterFinished", 0, policy.ttl_after_finished);
  fields.flag("suspend", policy.suspend);
}

void read_summers_status(const Fields& fields, SummersStatus& summers) {
  fields.number("wanted", summers.wanted);
  fields.number("had", summers.had);
  fields.text("reason", summers.reason);
  fields.text("message", summers.message);
  fields.text("lastChange", summers.last_change);
  fields.time("lastChangeTime", summers.last_change_time);
}

json to_json(const SummersStatus& summers) {
  json object = {{"wanted", summers.wanted}, {"had", summers.had}};
  if (!summers.reason.empty()) object["reason"] = shortened(summers.reason, kMaxReason);
  if (!summers.message.empty()) object["message"] = shortened(summers.message, kMaxMessage);
  if (!summers.last_change.empty()) object["lastChange"] = shortened(summers.last_change, kMaxMessage);
  if (summers.last_change_time) object["lastChangeTime"] = format_time(*summers.last_change_time);
  return object;
}

void read_indexes(const Fields& fields, const char* name, std::vector<uint32_t>& indexes) {
  std::string text;
  fields.text(name, text);
  absl::StatusOr<std::vector<uint32_t>> parsed = parse_indexes(text, kMaxReplicas);
  if (!parsed.ok()) return fields.fail(name, parsed.status().message());
  indexes = *std::move(parsed);
}

void read_status(const Fields& fields, TrainingJobStatus& status) {
  fields.number("observedGeneration", status.observed_generation);
  fields.text("phase", status.phase);
  fields.list("conditions", status.conditions, read_condition);
  fields.number("workersWanted", status.workers_wanted);
  fields.number("workersReady", status.workers_ready);
  fields.number("workersSucceeded", status.workers_succeeded);
  read_indexes(fields, "succeededIndexes", status.succeeded_indexes);
  fields.number("workersFailed", status.workers_failed);
  fields.number("summersReady", status.summers_ready);
  read_summers_status(fields.object("summers"), status.summers);
  fields.number("nextSummer", status.next_summer);
  fields.text("selector", status.selector);
  fields.number("attempt", status.attempt);
  fields.number("restarts", status.restarts);
  fields.number("retries", status.retries);
  fields.number("epoch", status.epoch);
  read_rank_map(fields.object("rankMap"), status.communication.rank_map);
  fields.text("strategy", status.communication.strategy);
  fields.text("bits", status.communication.bits);
  fields.text("bound", status.communication.bound);
  fields.text("goodput", status.communication.goodput);
  fields.text("efficiency", status.communication.efficiency);
  fields.time("startTime", status.start_time);
  fields.time("nextStartTime", status.next_start_time);
  fields.time("completionTime", status.completion_time);
}

json to_json(const Communication& communication) {
  const SummersWanted& wanted = communication.summers;
  json summers = {{"min", wanted.min}, {"max", wanted.max}};
  if (!wanted.resources.is_null()) summers["resources"] = wanted.resources;
  if (wanted.bits_per_second >= 1) summers["bandwidth"] = bandwidth_text(wanted.bits_per_second);
  json object = {{"strategy", std::string(to_string(communication.strategy))},
                 {"transport", std::string(name_in<Transport>(kTransports, communication.transport))},
                 {"rankMap", std::string(name_of(communication.rank_map))},
                 {"summers", std::move(summers)}};
  if (!communication.stages.empty()) object["stages"] = communication.stages;
  if (communication.radix > 0) object["radix"] = communication.radix;
  if (communication.bits.has_value()) object["bits"] = std::string(to_string(*communication.bits));
  if (communication.partition_bytes > 0) object["partitionBytes"] = communication.partition_bytes;
  object["compression"] = std::string(to_string(communication.compression));
  if (communication.fusion_bytes == kFuseAll) object["fusion"] = "Max";
  if (communication.fusion_bytes == kFuseAuto) object["fusion"] = "Auto";
  if (communication.fusion_bytes > 0 && communication.fusion_bytes < kFuseAuto) {
    object["fusion"] = communication.fusion_bytes;
  }
  return object;
}

json to_json(const RunPolicy& policy) {
  json object = {{"backoffLimit", policy.backoff_limit},
                 {"startDeadlineSeconds", absl::ToInt64Seconds(policy.start_deadline)},
                 {"cleanPodPolicy", std::string(name_in<CleanPodPolicy>(kCleanPodPolicies, policy.clean_pod_policy))},
                 {"suspend", policy.suspend}};
  if (policy.active_deadline) object["activeDeadlineSeconds"] = absl::ToInt64Seconds(*policy.active_deadline);
  if (policy.ttl_after_finished) object["ttlSecondsAfterFinished"] = absl::ToInt64Seconds(*policy.ttl_after_finished);
  return object;
}

}  // namespace

absl::string_view to_string(Strategy strategy) { return name_in<Strategy>(kStrategies, strategy); }

absl::string_view to_string(Bits bits) { return name_in<Bits>(kBits, bits); }

absl::string_view to_string(Compression compression) { return name_in<Compression>(kCompressions, compression); }

bool uses_summers(Strategy strategy) { return strategy == Strategy::kAuto || strategy == Strategy::kSummers; }

absl::StatusOr<TrainingJob> parse_training_job(const json& object) {
  absl::StatusOr<ObjectMeta> meta = parse_meta(object);
  if (!meta.ok()) return meta.status();
  TrainingJob job;
  job.meta = *std::move(meta);
  job.communication.summers.resources = default_resources();
  absl::Status status;
  const Fields document(object, "", status);
  const Fields spec = document.object("spec");
  read_workers(spec.object("workers"), job.workers);
  read_communication(spec.object("communication"), job.communication);
  read_run_policy(spec.object("runPolicy"), job.run_policy);
  read_status(document.object("status"), job.status);
  if (!status.ok()) return status;
  return job;
}

json to_json(const TrainingJobStatus& status) {
  json object = {{"observedGeneration", status.observed_generation},
                 {"conditions", json::array()},
                 {"workers", absl::StrCat(status.workers_ready + status.workers_succeeded, "/", status.workers_wanted)},
                 {"workersWanted", status.workers_wanted},
                 {"workersReady", status.workers_ready},
                 {"workersSucceeded", status.workers_succeeded},
                 {"workersFailed", status.workers_failed},
                 {"summersReady", status.summers_ready},
                 {"summers", to_json(status.summers)},
                 {"nextSummer", status.next_summer},
                 {"attempt", status.attempt},
                 {"restarts", status.restarts},
                 {"epoch", status.epoch}};
  for (const Condition& condition : status.conditions) object["conditions"].push_back(to_json(condition));
  if (!status.phase.empty()) object["phase"] = status.phase;
  if (!status.succeeded_indexes.empty()) object["succeededIndexes"] = indexes_text(status.succeeded_indexes);
  if (!status.selector.empty()) object["selector"] = shortened(status.selector, kMaxReason);
  const CommunicationStatus& communication = status.communication;
  if (communication.rank_map.has_value()) object["rankMap"] = to_json(*communication.rank_map);
  if (!communication.strategy.empty()) object["strategy"] = shortened(communication.strategy, kMaxList);
  if (!communication.bits.empty()) object["bits"] = shortened(communication.bits, kMaxShortWord);
  if (!communication.bound.empty()) object["bound"] = shortened(communication.bound, kMaxWord);
  if (!communication.goodput.empty()) object["goodput"] = shortened(communication.goodput, kMaxWord);
  if (!communication.efficiency.empty()) object["efficiency"] = shortened(communication.efficiency, kMaxWord);
  if (status.retries > 0) object["retries"] = status.retries;
  if (status.start_time) object["startTime"] = format_time(*status.start_time);
  if (status.next_start_time) object["nextStartTime"] = format_time(*status.next_start_time);
  if (status.completion_time) object["completionTime"] = format_time(*status.completion_time);
  return object;
}

json to_json(const TrainingJob& job) {
  const json workers = {{"replicas", job.workers.replicas},
                        {"localRanks", job.workers.local_ranks},
                        {"template", job.workers.pod_template}};
  return {
      {"apiVersion", kApiVersion},
      {"kind", "TrainingJob"},
      {"metadata", to_json(job.meta)},
      {"spec",
       {{"workers", workers}, {"communication", to_json(job.communication)}, {"runPolicy", to_json(job.run_policy)}}},
      {"status", to_json(job.status)}};
}

}  // namespace gleaner::api
