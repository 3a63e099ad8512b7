#include "operator/service/measurements.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace gleaner::operation {
namespace {

Queries expanded(const Queries& queries, absl::Duration window) {
  Queries expanded = default_queries();
  for (const auto& [name, expression] : queries) expanded[name] = expression;
  const std::string text = absl::StrCat(absl::ToInt64Seconds(window), "s");
  for (auto& [name, expression] : expanded) expression = absl::StrReplaceAll(expression, {{"$window", text}});
  return expanded;
}

// Returns "namespace/name" for a job's series, the node's name for a node's series, and else an empty string.
std::string key_of(const std::map<std::string, std::string>& labels) {
  const auto at = [&labels](const char* name) {
    const auto found = labels.find(name);
    return found == labels.end() ? std::string() : found->second;
  };
  const std::string job = at("trainingjob");
  return job.empty() ? at("node") : absl::StrCat(at("namespace"), "/", job);
}

}  // namespace

// Returns the default queries. Workers also wait for the slowest worker, so only the shortest wait of all workers
// counts as waiting for sums. For jobs that never wait in gln_wait (ddp_hook) there is no result, since their exposed
// communication is unknown.
Queries default_queries() {
  return {
      {kStepSeconds, "1 / (max by (namespace, trainingjob) (rate(gleaner_worker_steps_total[$window])) > 0)"},
      {kExposedSeconds,
       "min by (namespace, trainingjob) (rate(gleaner_worker_wait_seconds_total[$window]) and "
       "gleaner_worker_wait_seconds_total > 0) / (max by (namespace, trainingjob) "
       "(rate(gleaner_worker_steps_total[$window])) > 0)"},
      {kGoodput, "max by (namespace, trainingjob) (gleaner_job_goodput_bytes_per_second)"},
      {kJobAge, "time() - max by (namespace, trainingjob) (timestamp(gleaner_worker_steps_total))"},
      {kSpareCpus, "min by (node) (min_over_time(gleaner_node_spare_cpus[$window]))"},
      {kSpareBits, "min by (node) (min_over_time(gleaner_node_spare_bits_per_second[$window]))"},
      {kNodeAge, "time() - max by (node) (timestamp(gleaner_node_spare_cpus))"},
  };
}

Measurements::Measurements(const Clock& clock, PrometheusClient& client, const Queries& queries, absl::Duration window)
    : clock_(clock), client_(client), queries_(expanded(queries, window)) {}

absl::Status Measurements::poll() {
  absl::Status status;
  for (const auto& [name, expression] : queries_) {
    Answer answer;
    answer.at = clock_.since_start();
    const auto samples = client_.query(expression);
    if (!samples.ok()) {
      status.Update(absl::Status(samples.status().code(), absl::StrCat(name, ": ", samples.status().message())));
      // Prometheus does not answer, so other queries would time out, too.
      if (!absl::IsInvalidArgument(samples.status())) break;
      continue;
    }
    for (const PrometheusClient::Sample& sample : *samples) answer.value[key_of(sample.labels)] = sample.value;
    absl::MutexLock lock(&mutex_);
    answers_[name] = std::move(answer);
  }
  return status;
}

std::optional<autoscale::Reading> Measurements::reading(const char* query, const char* age,
                                                        const std::string& key) const {
  const auto answer = answers_.find(query), ages = answers_.find(age);
  if (answer == answers_.end() || ages == answers_.end()) return std::nullopt;
  const auto value = answer->second.value.find(key), then = ages->second.value.find(key);
  if (value == answer->second.value.end() || then == ages->second.value.end()) return std::nullopt;
  const absl::Duration since = clock_.since_start() - std::min(answer->second.at, ages->second.at);
  return autoscale::Reading{value->second, since + absl::Seconds(std::max(0.0, then->second))};
}

Measurements::OfJob Measurements::job(const std::string& key) const {
  absl::MutexLock lock(&mutex_);
  return {reading(kStepSeconds, kJobAge, key), reading(kExposedSeconds, kJobAge, key), reading(kGoodput, kJobAge, key)};
}

Measurements::OfNode Measurements::node(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  return {reading(kSpareCpus, kNodeAge, name), reading(kSpareBits, kNodeAge, name)};
}

}  // namespace gleaner::operation
