#include "operator/reconcile/pod_transports.h"

#include <algorithm>

#include "operator/reconcile/variable.h"

namespace gleaner::reconcile {
namespace {

using api::Transport;
using nlohmann::json;

constexpr char kSharedVolume[] = "gleaner-shm";
constexpr char kSharedFolder[] = "/var/run/gleaner-shm";

bool shares_directory(const api::TrainingJob& job, const PodSettings& settings) {
  return !settings.shm_host_path.empty() && job.communication.transport != Transport::kTcp;
}

bool uses_rdma(const api::TrainingJob& job, const PodSettings& settings) {
  const Transport wanted = job.communication.transport;
  return !settings.rdma_resource.empty() && (wanted == Transport::kAuto || wanted == Transport::kRdma);
}

// Returns the member `name`, after replacing it by `empty` if it is absent or of another JSON type.
json& part(json& object, const char* name, json empty) {
  json& found = object[name];
  if (found.type() != empty.type()) found = std::move(empty);
  return found;
}

}  // namespace

void add_transport_variables(const api::TrainingJob& job, const PodSettings& settings, json& environment) {
  const auto add = [&](const char* name, const char* value) { environment.push_back(variable(name, value)); };
  switch (job.communication.transport) {
    case Transport::kAuto:
      break;
    case Transport::kTcp:
      add("GLEANER_TRANSPORTS", "tcp");
      break;
    case Transport::kShm:
      add("GLEANER_TRANSPORTS", "shm");
      break;
    case Transport::kRdma:
      add("GLEANER_TRANSPORTS", "shm,rdma");
      break;
  }
  if (shares_directory(job, settings)) add("GLEANER_SHM_DIR", kSharedFolder);
}

void add_shared_directory(const api::TrainingJob& job, const PodSettings& settings, json& container) {
  if (!shares_directory(job, settings)) return;
  part(container, "volumeMounts", json::array()).push_back({{"name", kSharedVolume}, {"mountPath", kSharedFolder}});
}

void add_shared_volume(const api::TrainingJob& job, const PodSettings& settings, json& pod_spec) {
  if (!shares_directory(job, settings)) return;
  part(pod_spec, "volumes", json::array())
      .push_back({{"name", kSharedVolume}, {"hostPath", {{"path", settings.shm_host_path}, {"type", "Directory"}}}});
}

void add_rdma(const api::TrainingJob& job, const PodSettings& settings, json& container) {
  if (!uses_rdma(job, settings)) return;
  json& resources = part(container, "resources", json::object());
  for (const char* kind : {"requests", "limits"}) {
    part(resources, kind, json::object()).emplace(settings.rdma_resource, "1");
  }
  json& capabilities = part(part(container, "securityContext", json::object()), "capabilities", json::object());
  json& added = part(capabilities, "add", json::array());
  if (std::find(added.begin(), added.end(), "IPC_LOCK") == added.end()) added.push_back("IPC_LOCK");
}

}  // namespace gleaner::reconcile
