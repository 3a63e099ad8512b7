#include "operator/reconcile/pods.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/pod_transports.h"
#include "operator/reconcile/rank_environment.h"
#include "operator/reconcile/variable.h"

namespace gleaner::reconcile {
namespace {

using nlohmann::json;

constexpr int kDataPort = 7071;
constexpr int kMetricsPort = 7072;
constexpr char kBootstrapFolder[] = "/var/run/gleaner";
constexpr char kBootstrapVolume[] = "gleaner-bootstrap";
constexpr int kTokenSeconds = 3600;
constexpr int kWeightOfLevel = 10, kMostWeight = 100;  // of preferences for near nodes

json metadata(const api::TrainingJob& job, const char* role, uint32_t index) {
  return {{"name", pod_name(job.meta.name, role, index, job.status.attempt)},
          {"namespace", job.meta.ns},
          {"labels",
           {{api::kJobLabel, job.meta.name},
            {api::kRoleLabel, role},
            {api::kIndexLabel, absl::StrCat(index)},
            {api::kAttemptLabel, absl::StrCat(job.status.attempt)},
            {kManagedByLabel, kManagedBy}}}};
}

// Returns the volume with the token that proves a member's identity, and the CA that verifies the coordinator's
// certificate.
json bootstrap_volume() {
  return {{"name", kBootstrapVolume},
          {"projected",
           {{"sources",
             json::array({{{"serviceAccountToken",
                            {{"audience", kTokenAudience}, {"expirationSeconds", kTokenSeconds}, {"path", "token"}}}},
                          {{"configMap",
                            {{"name", kBootstrapConfigMap},
                             {"items", json::array({{{"key", "ca.crt"}, {"path", "ca.crt"}}})}}}}})}}}};
}

json bootstrap_mount() { return {{"name", kBootstrapVolume}, {"mountPath", kBootstrapFolder}, {"readOnly", true}}; }

// The kubelet replaces $(GLEANER_POD_IP) in variables that come after GLEANER_POD_IP.
json member_environment(const api::TrainingJob& job, const PodSettings& settings) {
  json environment =
      json::array({{{"name", "GLEANER_POD_IP"}, {"valueFrom", {{"fieldRef", {{"fieldPath", "status.podIP"}}}}}},
                   variable("GLEANER_COORDINATOR", settings.coordinator),
                   variable("GLEANER_JOB", session_name(job.meta.key(), job.status.attempt)),
                   variable("GLEANER_TOKEN_FILE", absl::StrCat(kBootstrapFolder, "/token")),
                   variable("GLEANER_CA_FILE", absl::StrCat(kBootstrapFolder, "/ca.crt"))});
  add_transport_variables(job, settings, environment);
  return environment;
}

// Puts `ours` before the user's variables, so that these may refer to them.
void prepend(json& list, json ours) {
  if (list.is_array()) {
    for (json& item : list) ours.push_back(std::move(item));
  }
  list = std::move(ours);
}

void add_to_container(json& container, const json& environment, bool first) {
  prepend(container["env"], environment);
  json& mounts = container["volumeMounts"];
  if (!mounts.is_array()) mounts = json::array();
  mounts.push_back(bootstrap_mount());
  if (!first) return;
  json& ports = container["ports"];
  if (!ports.is_array()) ports = json::array();
  ports.push_back({{"name", "gleaner"}, {"containerPort", kDataPort}});
  ports.push_back({{"name", "metrics"}, {"containerPort", kMetricsPort}});
}

// Returns the value of GLEANER_FUSION_BYTES.
std::string fusion_text(uint64_t fusion_bytes) {
  if (fusion_bytes == api::kFuseAll) return "inf";
  return fusion_bytes == api::kFuseAuto ? "auto" : absl::StrCat(fusion_bytes);
}

// Tells the script the compression and the fusion of the job, in the form that gleaner.torch reads.
void add_gradient_variables(const api::Communication& communication, json& environment) {
  if (communication.compression != api::Compression::kNone) {
    environment.push_back(
        variable("GLEANER_COMPRESSION", absl::AsciiStrToLower(api::to_string(communication.compression))));
  }
  if (communication.fusion_bytes > 0) {
    environment.push_back(variable("GLEANER_FUSION_BYTES", fusion_text(communication.fusion_bytes)));
  }
}

json worker_environment(const api::TrainingJob& job, uint32_t index, const PodSettings& settings) {
  json environment = member_environment(job, settings);
  environment.push_back(variable("GLEANER_WORKER", absl::StrCat(index)));
  environment.push_back(variable("GLEANER_WORKERS", absl::StrCat(job.workers.replicas)));
  environment.push_back(variable("GLEANER_ATTEMPT", absl::StrCat(job.status.attempt)));
  if (job.workers.local_ranks > 1) {
    environment.push_back(variable("GLEANER_LOCAL_SIZE", absl::StrCat(job.workers.local_ranks)));
  }
  environment.push_back(variable("GLEANER_ADDRESS", absl::StrCat("$(GLEANER_POD_IP):", kDataPort)));
  environment.push_back(variable("GLEANER_METRICS", absl::StrCat("$(GLEANER_POD_IP):", kMetricsPort)));
  environment.push_back(
      variable("GLEANER_OPEN_TIMEOUT", absl::StrCat(std::ceil(absl::ToDoubleSeconds(job.run_policy.start_deadline)))));
  add_rank_variables(job, index, environment);
  add_gradient_variables(job.communication, environment);
  return environment;
}

// Adds the user's labels and annotations. On a conflict the operator's value wins.
void merge_metadata(const json& user, json& ours) {
  if (!user.is_object()) return;
  for (const char* kind : {"labels", "annotations"}) {
    const auto found = user.find(kind);
    if (found == user.end() || !found->is_object()) continue;
    json merged = *found;
    if (ours.contains(kind)) merged.update(ours[kind]);
    ours[kind] = std::move(merged);
  }
}

// CNI's bandwidth plugin reads quantities of bits per second, and accepts no less than 1k.
json bandwidth_annotations(double bits_per_second) {
  const std::string quantity = absl::StrCat(static_cast<int64_t>(std::max(bits_per_second, 1000.0)));
  return {{"kubernetes.io/ingress-bandwidth", quantity}, {"kubernetes.io/egress-bandwidth", quantity}};
}

// Prefers the candidate's machine. Excludes machines with another pod of this job: two summers on one machine would
// share its link, and a summer beside a worker would load the link that summers are to relieve.
json summer_affinity(const api::TrainingJob& job, const std::string& node) {
  const json here = {{"key", "metadata.name"}, {"operator", "In"}, {"values", {node}}};
  return {{"nodeAffinity",
           {{"preferredDuringSchedulingIgnoredDuringExecution",
             json::array({{{"weight", 100}, {"preference", {{"matchFields", json::array({here})}}}}})}}},
          {"podAntiAffinity",
           {{"requiredDuringSchedulingIgnoredDuringExecution",
             json::array({{{"topologyKey", "kubernetes.io/hostname"},
                           {"labelSelector", {{"matchLabels", {{api::kJobLabel, job.meta.name}}}}}}})}}}};
}

// Makes workers of a job prefer nodes near each other's, besides the affinities of the user's template.
void prefer_near(const api::TrainingJob& job, const placement::LabelLevels& levels, json& spec) {
  json& affinity = spec["affinity"];
  if (!affinity.is_object()) affinity = json::object();
  json& near = affinity["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"];
  if (!near.is_array()) near = json::array();
  const json workers = {{"matchLabels", {{api::kJobLabel, job.meta.name}, {api::kRoleLabel, kWorker}}}};
  int weight = 0;
  for (const placement::LabelLevel& level : levels) {
    weight = std::min(weight + kWeightOfLevel, kMostWeight);
    for (const std::string& key : level) {
      near.push_back({{"weight", weight}, {"podAffinityTerm", {{"topologyKey", key}, {"labelSelector", workers}}}});
    }
  }
}

json summer_container(const api::TrainingJob& job, uint32_t index, double bits_per_second,
                      const PodSettings& settings) {
  json environment = member_environment(job, settings);
  environment.push_back(variable("GLEANER_ADDRESS", absl::StrCat("$(GLEANER_POD_IP):", kDataPort)));
  json container = {
      {"name", "summer"},
      {"image", settings.summer_image},
      {"imagePullPolicy", "IfNotPresent"},
      {"command", {"gleaner-summer"}},
      {"args",
       {"--listen", absl::StrCat("$(GLEANER_POD_IP):", kDataPort), "--index", absl::StrCat(index), "--metrics",
        absl::StrCat("$(GLEANER_POD_IP):", kMetricsPort), "--start-timeout",
        absl::StrCat(std::ceil(absl::ToDoubleSeconds(job.run_policy.start_deadline))), "--background"}},
      {"env", environment},
      {"ports", json::array({{{"name", "gleaner"}, {"containerPort", kDataPort}},
                             {{"name", "metrics"}, {"containerPort", kMetricsPort}}})},
      {"resources", summer_resources(job)},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"readOnlyRootFilesystem", true}, {"capabilities", {{"drop", {"ALL"}}}}}},
      {"volumeMounts", json::array({bootstrap_mount()})}};
  if (bits_per_second >= 1) {  // the first plan with this summer assumes this bandwidth
    for (const std::string& word : {std::string("--bandwidth"), absl::StrCat(static_cast<int64_t>(bits_per_second)),
                                    std::string("--pace"), std::string("plan")}) {
      container["args"].push_back(word);
    }
  }
  add_shared_directory(job, settings, container);
  add_rdma(job, settings, container);
  if (settings.summer_yield_above > 0) {
    container["args"].push_back("--yield-above");
    container["args"].push_back(absl::StrCat(settings.summer_yield_above));
  }
  return container;
}

json fill_template(const api::TrainingJob& job, uint32_t index, const PodSettings& settings,
                   const placement::LabelLevels& levels) {
  json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata(job, kWorker, index)}};
  pod["metadata"]["ownerReferences"] = owner_references(job);
  if (job.workers.replicas == 1 || job.communication.rank_map == api::RankOrder::kIdentity) {
    pod["metadata"]["labels"][api::kRankLabel] = absl::StrCat(index * job.workers.local_ranks);
  }
  if (job.workers.pod_template.contains("metadata")) {
    merge_metadata(job.workers.pod_template["metadata"], pod["metadata"]);
  }
  json spec = job.workers.pod_template.value("spec", json::object());
  const json environment = worker_environment(job, index, settings);
  bool first = true;
  for (json& container : spec["containers"]) {
    add_to_container(container, environment, first);
    add_shared_directory(job, settings, container);
    if (first) add_rdma(job, settings, container);
    first = false;
  }
  json& volumes = spec["volumes"];
  if (!volumes.is_array()) volumes = json::array();
  volumes.push_back(bootstrap_volume());
  add_shared_volume(job, settings, spec);
  spec["restartPolicy"] = "Never";  // the operator decides what follows from a lost worker
  spec["hostname"] = pod_name(job.meta.name, kWorker, index, 0);
  spec["subdomain"] = job.meta.name;
  if (job.workers.replicas > 1) {
    prefer_near(job, levels, spec);
    json& gates = spec["schedulingGates"];
    if (!gates.is_array()) gates = json::array();
    gates.push_back({{"name", kGangGate}});
  }
  pod["spec"] = std::move(spec);
  return pod;
}

}  // namespace

json summer_resources(const api::TrainingJob& job) {
  json resources = job.communication.summers.resources;
  if (!resources.is_object()) resources = json::object();
  json& requests = resources["requests"];
  if (!requests.is_object()) requests = {{"cpu", "2m"}, {"memory", "64Mi"}};
  requests[api::kSummerResource] = "1";
  json& limits = resources["limits"];
  if (!limits.is_object()) limits = json::object();
  limits[api::kSummerResource] = "1";
  return resources;
}

std::string session_of(const api::TrainingJob& job) { return session_name(job.meta.key(), job.status.attempt); }

absl::StatusOr<json> worker_pod(const api::TrainingJob& job, uint32_t index, const PodSettings& settings,
                                const placement::LabelLevels& levels) {
  try {
    return fill_template(job, index, settings, levels);
  } catch (const json::exception& error) {  // the schema does not check most of a template
    return absl::InvalidArgumentError(
        absl::StrCat("spec.workers.template does not have the form of a pod template: ", error.what()));
  }
}

json summer_pod(const api::TrainingJob& job, uint32_t index, const placement::Candidate& candidate,
                const PodSettings& settings) {
  json pod = {{"apiVersion", "v1"}, {"kind", "Pod"}, {"metadata", metadata(job, kSummer, index)}};
  pod["metadata"]["ownerReferences"] = owner_references(job);
  if (candidate.bits_per_second > 0) {
    pod["metadata"]["annotations"] = bandwidth_annotations(candidate.bits_per_second);
  }
  pod["spec"] = {{"restartPolicy", "Never"},
                 {"terminationGracePeriodSeconds", 5},
                 {"securityContext",
                  {{"runAsNonRoot", true},
                   {"runAsUser", 65532},
                   {"runAsGroup", 65532},
                   {"fsGroup", 65532},
                   {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
                 {"automountServiceAccountToken", false},
                 {"enableServiceLinks", false},
                 {"affinity", summer_affinity(job, candidate.node)},
                 {"containers", json::array({summer_container(job, index, candidate.bits_per_second, settings)})},
                 {"volumes", json::array({bootstrap_volume()})}};
  add_shared_volume(job, settings, pod["spec"]);
  if (!settings.summer_priority_class.empty()) pod["spec"]["priorityClassName"] = settings.summer_priority_class;
  return pod;
}

json worker_service(const api::TrainingJob& job) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata",
           {{"name", job.meta.name},
            {"namespace", job.meta.ns},
            {"labels", {{api::kJobLabel, job.meta.name}, {kManagedByLabel, kManagedBy}}},
            {"ownerReferences", owner_references(job)}}},
          {"spec",
           {{"clusterIP", "None"},
            {"publishNotReadyAddresses", true},
            {"selector", {{api::kJobLabel, job.meta.name}, {api::kRoleLabel, kWorker}}},
            {"ports", json::array({{{"name", "gleaner"}, {"port", kDataPort}}})}}}};
}

}  // namespace gleaner::reconcile
