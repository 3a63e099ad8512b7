#include "operator/service/report_writer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "common/base/status_macros.h"
#include "operator/service/field_manager.h"

namespace gleaner::operation {
namespace {

using nlohmann::json;

constexpr absl::Duration kFigureInterval = absl::Seconds(10);

// Returns the status without figures.
std::string lasting_fields(api::TrainingJobStatus status) {
  status.communication.bound = status.communication.bound.empty() || status.communication.bound == "unknown"
                                   ? status.communication.bound
                                   : "known";
  status.communication.goodput.clear();
  status.communication.efficiency.clear();
  status.summers.message.clear();
  return api::to_json(status).dump();
}

std::string lasting_fields(api::ReductionPlan plan) {
  plan.status.steps = 0;
  plan.status.step_communication_seconds = plan.status.goodput_bytes_per_second = plan.status.efficiency = 0;
  plan.status.efficiency_basis.clear();
  // The bytes of a step are a mean of the last minute, and its other bytes and its bound follow from them.
  for (uint64_t* bytes : {&plan.spec.bytes_per_step, &plan.spec.push_bytes_per_step, &plan.spec.dense_bytes_per_step})
    *bytes = *bytes > 0 ? 1 : 0;
  for (double* bound : {&plan.spec.bound_seconds, &plan.spec.bound_without_summers_seconds})
    *bound = *bound > 0 ? 1 : 0;
  plan.meta = {};
  return api::to_json(plan).dump();
}

}  // namespace

absl::Status ReportWriter::write_plan(const std::optional<api::ReductionPlan>& observed,
                                      const api::ReductionPlan& plan) {
  const bool same = observed.has_value() && lasting_fields(*observed) == lasting_fields(plan);
  const bool first = !observed.has_value() || observed->spec.attempt != plan.spec.attempt;
  if (same && !may_write_plan_figures(plan.meta.key())) return absl::OkStatus();
  const json object = api::to_json(plan);
  if (!observed.has_value() || api::to_json(*observed)["spec"] != object["spec"]) {
    json spec = object;
    spec.erase("status");
    GLN_RETURN_IF_ERROR(client_.apply(kube::reduction_plans(), spec, apply_options()).status());
  }
  if (first && plan.spec.epoch == 0) return absl::OkStatus();  // there is no status yet
  json status = object;
  status.erase("spec");
  return client_.apply(kube::reduction_plans(), status, apply_options("status")).status();
}

absl::Status ReportWriter::write_status(const api::TrainingJob& job, const api::TrainingJobStatus& status) {
  const json wanted = api::to_json(status);
  if (wanted == api::to_json(job.status)) return absl::OkStatus();
  std::string lasting = lasting_fields(status);
  if (lasting == lasting_fields(job.status) && !may_write_status_figures(job.meta.key(), std::move(lasting))) {
    return absl::OkStatus();
  }
  const kube::Object object = {{"apiVersion", api::kApiVersion},
                               {"kind", "TrainingJob"},
                               {"metadata",
                                {{"name", job.meta.name},
                                 {"namespace", job.meta.ns},
                                 {"uid", job.meta.uid},
                                 {"resourceVersion", job.meta.resource_version}}},
                               {"status", wanted}};
  // The operator owns the whole status, so no merge is needed. A replace costs the API server less than an apply.
  return client_.replace(kube::training_jobs(), object, "status").status();
}

bool ReportWriter::may_write_plan_figures(const std::string& job_key) const {
  const absl::Duration now = env_.clock->since_start();
  absl::MutexLock lock(&mutex_);
  const auto found = written_.find(job_key);
  return found == written_.end() || now - found->second.at >= kFigureInterval;
}

// Returns whether kFigureInterval has passed since figures were last written with the same other fields. If so, counts
// this write.
bool ReportWriter::may_write_status_figures(const std::string& job_key, std::string lasting_fields) {
  const absl::Duration now = env_.clock->since_start();
  absl::MutexLock lock(&mutex_);
  const auto found = written_.find(job_key);
  if (found != written_.end() && found->second.lasting_fields == lasting_fields &&
      now - found->second.at < kFigureInterval) {
    return false;
  }
  written_[job_key] = {now, std::move(lasting_fields)};
  return true;
}

void ReportWriter::forget(const std::string& job_key) {
  absl::MutexLock lock(&mutex_);
  written_.erase(job_key);
}

}  // namespace gleaner::operation
