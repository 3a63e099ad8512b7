#include "operator/service/scaler.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/summers.h"
#include "operator/service/scaling_view.h"

namespace gleaner::operation {
namespace {

constexpr absl::Duration kRoundInterval = absl::Seconds(1);

autoscale::Settings settings_of(const ScalingOptions& options) {
  autoscale::Settings settings = options.settings;
  settings.measured = !options.prometheus.url.empty();
  return settings;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Scaler>> Scaler::start(const Parts& parts) {
  auto scaler = std::unique_ptr<Scaler>(new Scaler(parts));
  if (!parts.options.prometheus.url.empty()) {
    GLN_ASSIGN_OR_RETURN(scaler->client_, PrometheusClient::create(*parts.env.clock, parts.options.prometheus));
    scaler->measurements_ =
        std::make_unique<Measurements>(*parts.env.clock, *scaler->client_, parts.options.queries, parts.options.window);
    scaler->polls_.emplace("gln-prometheus", parts.options.interval, Periodic::First::kNow,
                           [self = scaler.get()] { self->poll_prometheus(); });
  }
  scaler->rounds_.emplace("gln-scale", kRoundInterval, Periodic::First::kAfterInterval,
                          [self = scaler.get()] { self->run_round(); });
  return scaler;
}

Scaler::Scaler(const Parts& parts) : parts_(parts), autoscaler_(settings_of(parts.options)) {}

std::optional<reconcile::ScalingRequest> Scaler::request(const std::string& job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = standing_.find(job);
  return found == standing_.end() ? std::nullopt : std::optional(found->second.request());
}

void Scaler::poll_prometheus() {
  if (const absl::Status status = measurements_->poll(); !status.ok()) {
    parts_.env.log->warning(
        "can't query Prometheus; the number of summers of a job whose metrics grow too old stays as it is", "error",
        status.message());
  }
}

void Scaler::run_round() {
  std::vector<reconcile::Observation> jobs;
  for (const auto& job : parts_.cluster.jobs()) {
    if (!reconcile::wants_summers(*job) || job->status.phase != "Running") continue;
    auto session = parts_.sessions.state(reconcile::session_of(*job));
    if (!session.has_value() || !may_scale(*job, *session)) continue;
    jobs.push_back(parts_.cluster.observe(*job));
    jobs.back().session = std::move(session);
  }
  std::vector<ScalingView> views =
      scaling_views(jobs, parts_.cluster.machines(), measurements_.get(), parts_.env.clock->now());
  std::vector<autoscale::Job> inputs;
  inputs.reserve(views.size());
  for (ScalingView& view : views) inputs.push_back(view.job);
  const absl::Duration now = parts_.env.clock->since_start();
  std::map<std::string, autoscale::Verdict> verdicts = autoscaler_.round(inputs, now);
  absl::MutexLock lock(&mutex_);
  std::map<std::string, StandingRequest> standing;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string& key = inputs[i].key;
    StandingRequest& next = standing[key] = std::move(standing_[key]);
    const bool must_act =
        next.update(jobs[i].job.status, std::move(views[i].spare_bits_per_second), std::move(verdicts[key]), now);
    if (must_act) parts_.queue.add(key);
  }
  standing_ = std::move(standing);
}

}  // namespace gleaner::operation
