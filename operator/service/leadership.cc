#include "operator/service/leadership.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/kube/status.h"
#include "operator/reconcile/refusal.h"

namespace gleaner::operation {
namespace {

constexpr absl::Duration kFreshen = absl::Minutes(1);
constexpr uint32_t kRepairThreads = 2;
constexpr char kPortName[] = "grpc";

std::vector<std::string> host_names(const OperatorOptions& options) {
  return {absl::StrCat(options.service, ".", options.ns, ".svc"), options.service,
          absl::StrCat(options.service, ".", options.ns),
          absl::StrCat(options.service, ".", options.ns, ".svc.cluster.local")};
}

// "namespace/name/attempt" -> "namespace/name".
std::string job_key(const std::string& session) { return session.substr(0, session.rfind('/')); }

reconcile::PodSettings settings_of(const OperatorOptions& options) {
  return {absl::StrCat(options.service, ".", options.ns, ".svc:", options.listen.port),
          options.summer_image,
          options.summer_priority_class,
          options.scaling.settings.min_gain,
          options.shm_host_path,
          options.rdma_resource,
          options.summer_yield_above};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Leadership>> Leadership::begin(const Parts& parts, uint64_t term) {
  auto leadership = std::unique_ptr<Leadership>(new Leadership(parts));
  GLN_RETURN_IF_ERROR(leadership->start(term));
  return leadership;
}

Leadership::Leadership(const Parts& parts)
    : parts_(parts),
      identities_(parts.env, parts.client, parts.options.ns, host_names(parts.options), parts.folder,
                  find_bootstrap_in(parts.cluster)),
      authenticator_(parts.env, parts.client,
                     [this](const std::string& ns, const std::string& name) { return find_pod(ns, name); }),
      job_metrics_(parts.registry),
      events_(kube::EventRecorder::start(parts.env, parts.client, "gleaner-operator", parts.options.identity)) {}

absl::Status Leadership::start(uint64_t term) {
  if (absl::Status status = identities_.refresh(); !status.ok()) {
    report_refusal("v1", "Secret", kSecretName, status);
    return status;
  }
  coordinator::Service::ServiceOptions options;
  options.listen = parts_.options.listen;
  options.tls = {identities_.certificate_file(), identities_.key_file()};
  options.authenticator = &authenticator_;
  options.on_changed = [queue = &parts_.queue](const std::string& session) { queue->add(job_key(session)); };
  options.registry = &parts_.registry;
  options.term = term;
  GLN_ASSIGN_OR_RETURN(sessions_, coordinator::Service::start(parts_.env, std::move(options)));
  GLN_ASSIGN_OR_RETURN(scaler_,
                       Scaler::start({parts_.env, parts_.cluster, *sessions_, parts_.queue, parts_.options.scaling}));
  reconciler_ = std::make_unique<JobReconciler>(JobReconciler::Parts{
      parts_.env, parts_.client, parts_.cluster, *sessions_, identities_, *events_, job_metrics_,
      [this](const std::string& job) { return scaler_->request(job); }, settings_of(parts_.options)});
  repair_ = std::make_unique<ObjectRepair>(parts_.env, parts_.client, parts_.cluster, identities_);
  for (const auto& job : parts_.cluster.jobs()) {
    parts_.queue.add(job->meta.key());
    parts_.repairs.add(job->meta.key());
  }
  repair_bootstraps();
  parts_.repairs.add(kTopologyKey);
  repair_controller_ =
      kube::Controller::start(parts_.env, {"repair", kRepairThreads}, *repair_, parts_.repairs, &parts_.registry);
  controller_ = kube::Controller::start(parts_.env, {"trainingjob", parts_.options.workers}, *reconciler_, parts_.queue,
                                        &parts_.registry);
  if (absl::Status status = publish_endpoint(); !status.ok()) {
    report_refusal("discovery.k8s.io/v1", "EndpointSlice", parts_.options.service, status);
    return status;
  }
  parts_.metrics.set_leader(true);
  update_metrics();
  refreshes_.emplace("gln-fresh", kFreshen, Periodic::First::kAfterInterval, [this] { refresh(); });
  return absl::OkStatus();
}

Leadership::~Leadership() {
  refreshes_.reset();
  controller_.reset();  // waits for running reconcilers
  repair_controller_.reset();
  scaler_.reset();
  sessions_.reset();
  parts_.metrics.set_leader(false);
}

absl::Status Leadership::publish_endpoint() {
  const OperatorOptions& options = parts_.options;
  const kube::Object slice = {
      {"apiVersion", "discovery.k8s.io/v1"},
      {"kind", "EndpointSlice"},
      {"metadata",
       {{"name", options.service},
        {"namespace", options.ns},
        {"labels",
         {{"kubernetes.io/service-name", options.service},
          {"endpointslice.kubernetes.io/managed-by", "gleaner-operator"}}}}},
      {"addressType", options.pod_ip.find(':') == std::string::npos ? "IPv4" : "IPv6"},
      {"endpoints", {{{"addresses", {options.pod_ip}}, {"conditions", {{"ready", true}}}}}},
      {"ports", {{{"name", kPortName}, {"port", sessions_->address().port}, {"protocol", "TCP"}}}}};
  kube::ApplyOptions apply;
  apply.field_manager = "gleaner-operator";
  return parts_.client.apply(kube::endpoint_slices(), slice, apply).status();
}

void Leadership::repair_bootstraps() {
  for (const auto& job : parts_.cluster.jobs()) parts_.repairs.add(job->meta.ns);
  for (const auto& bootstrap : parts_.cluster.bootstraps()) parts_.repairs.add(bootstrap->ns);
}

void Leadership::refresh() {
  if (const absl::Status status = identities_.refresh(); !status.ok()) {
    parts_.env.log->warning("can't renew the certificates; the next try is in a minute", "error", status.message());
    report_refusal("v1", "Secret", kSecretName, status);
  }
  repair_bootstraps();  // the CA may be a new one
  if (const absl::Status status = publish_endpoint(); !status.ok()) {
    parts_.env.log->warning("can't write the coordinator's EndpointSlice", "error", status.message());
    report_refusal("discovery.k8s.io/v1", "EndpointSlice", parts_.options.service, status);
  }
  update_metrics();
}

void Leadership::update_metrics() {
  const std::shared_ptr<const api::Topology> topology = parts_.cluster.topology();
  parts_.metrics.update(identities_.identity(), parts_.cluster.profiles(),
                        topology == nullptr ? api::TopologyStatus() : topology->status, parts_.env.clock->now());
}

void Leadership::report_refusal(const std::string& api_version, const std::string& kind, const std::string& name,
                                const absl::Status& status) {
  if (!kube::is_refusal(status)) return;
  const reconcile::EventNote event = reconcile::refusal_event(kind, status);
  events_->warning({api_version, kind, parts_.options.ns, name, ""}, event.reason, event.message);
}

absl::StatusOr<reconcile::PodView> Leadership::find_pod(const std::string& ns, const std::string& name) {
  if (const auto pod = parts_.cluster.pod(absl::StrCat(ns, "/", name)); pod != nullptr) return *pod;
  // The cache may be behind, since a pod connects as soon as it starts.
  absl::StatusOr<kube::Object> object = parts_.client.get(kube::pods(), ns, name);
  if (absl::IsNotFound(object.status())) {
    return absl::PermissionDeniedError(absl::StrCat("there is no pod ", ns, "/", name));
  }
  if (!object.ok()) return absl::UnavailableError(object.status().message());
  return reconcile::parse_pod(*object);
}

}  // namespace gleaner::operation
