#include "operator/reconcile/gpus.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/api/meta.h"

namespace gleaner::reconcile {
namespace {

using nlohmann::json;

// Returns the member of an object; null: there is none.
const json* member(const json* object, const char* name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto found = object->find(name);
  return found == object->end() ? nullptr : &*found;
}

double quantity(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return 0;
  return api::parse_quantity(value.get<std::string>()).value_or(0);
}

}  // namespace

double requested_gpus(const json& pod_template) {
  const json* containers = member(member(&pod_template, "spec"), "containers");
  if (containers == nullptr || !containers->is_array()) return 0;
  double gpus = 0;
  for (const json& container : *containers) {
    // Kubernetes wants limits of extended resources, and takes requests from them.
    const json* limit = member(member(member(&container, "resources"), "limits"), kGpuResource);
    if (limit != nullptr) gpus += quantity(*limit);
  }
  return gpus;
}

std::string gpu_hint(const api::Workers& workers) {
  const double gpus = requested_gpus(workers.pod_template);
  if (gpus <= 0 || gpus == workers.local_ranks) return "";
  const std::string found = absl::StrCat("each worker requests ", gpus, " ", kGpuResource,
                                         ", but spec.workers.localRanks is ", workers.local_ranks);
  if (gpus < workers.local_ranks) {
    return absl::StrCat(found, ": its processes share GPUs. If each process should have one, request ",
                        workers.local_ranks);
  }
  return absl::StrCat(found, ": unless a process uses several GPUs, suspend the job and set localRanks to ", gpus,
                      ", so that each GPU has a process");
}

}  // namespace gleaner::reconcile
