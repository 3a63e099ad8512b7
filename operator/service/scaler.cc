#include "operator/service/scaler.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/summers.h"

namespace gleaner::operation {
namespace {

constexpr absl::Duration kRoundInterval = absl::Seconds(1);
constexpr absl::Duration kAdditionLife =
    absl::Seconds(10);                                  // an addition that was not carried out stays in force this long
constexpr absl::Duration kOverdue = absl::Seconds(10);  // a summer that was told to leave should be gone by then

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
  return found == standing_.end() ? std::nullopt : std::optional(found->second.request);
}

void Scaler::poll_prometheus() {
  if (const absl::Status status = measurements_->poll(); !status.ok()) {
    parts_.env.log->warning(
        "can't query Prometheus; the number of summers of a job whose metrics grow too old stays as it is", "error",
        status.message());
  }
}

void Scaler::run_round() {
  std::vector<reconcile::Observed> jobs;
  for (const auto& job : parts_.cluster.jobs()) {
    if (!reconcile::wants_summers(*job) || job->status.phase != "Running") continue;
    auto session = parts_.sessions.state(reconcile::session_of(*job));
    if (!session.has_value() || !may_scale(*job, *session)) continue;
    jobs.push_back(parts_.cluster.observe(*job));
    jobs.back().candidates = nullptr;  // scaling_views() finds the candidates of all jobs at once
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
    if (update_request(jobs[i].job, std::move(views[i]), std::move(verdicts[key]), now, next)) parts_.queue.add(key);
  }
  standing_ = std::move(standing);
}

bool Scaler::update_request(const api::TrainingJob& job, ScalingView view, autoscale::Verdict verdict,
                            absl::Duration now, StandingRequest& standing) {
  reconcile::ScalingRequest& request = standing.request;
  const reconcile::ScalingRequest before = std::move(request);
  request = {};
  request.attempt = job.status.attempt;
  request.next_summer = job.status.next_summer;
  request.spare_bits_per_second = std::move(view.spare_bits_per_second);
  // An addition stays in force until status.nextSummer shows it, since the API server may have been unreachable.
  const bool is_open = before.verdict.add.has_value() && before.attempt == request.attempt &&
                       before.next_summer == request.next_summer && now - standing.addition_since < kAdditionLife;
  if (is_open && verdict.remove.empty() && !verdict.add.has_value()) verdict = before.verdict;
  if (verdict.add.has_value() && !is_open) standing.addition_since = now;
  absl::flat_hash_map<uint32_t, absl::Duration> removal_since;
  for (const autoscale::Removal& removal : verdict.remove) {
    const auto found = standing.removal_since.find(removal.index);
    removal_since[removal.index] = found == standing.removal_since.end() ? now : found->second;
    if (now - removal_since[removal.index] > kOverdue) request.overdue.push_back(removal.index);
  }
  const bool is_new = removal_since.size() != standing.removal_since.size() || request.overdue != before.overdue ||
                      verdict.code != before.verdict.code || verdict.wanted != before.verdict.wanted ||
                      verdict.add.has_value();
  standing.removal_since = std::move(removal_since);
  request.verdict = std::move(verdict);
  return is_new;
}

}  // namespace gleaner::operation
