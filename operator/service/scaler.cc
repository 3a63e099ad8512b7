#include "operator/service/scaler.h"

#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "operator/reconcile/pods.h"
#include "operator/reconcile/summers.h"

namespace gleaner::operation {
namespace {

constexpr absl::Duration kLookEvery = absl::Seconds(1);
constexpr absl::Duration kFollowed = absl::Seconds(10);  // within which an addition that stands is carried out
constexpr absl::Duration kOverdue = absl::Seconds(10);   // for a summer to leave that was told to

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
    scaler->asks_ = std::thread([self = scaler.get()] {
      name_this_thread("gln-prometheus");
      do {
        self->ask();
      } while (!self->stopping_.WaitForNotificationWithTimeout(self->parts_.options.interval));
    });
  }
  scaler->looks_ = std::thread([self = scaler.get()] {
    name_this_thread("gln-scale");
    while (!self->stopping_.WaitForNotificationWithTimeout(kLookEvery)) self->look();
  });
  return scaler;
}

Scaler::Scaler(const Parts& parts) : parts_(parts), autoscaler_(settings_of(parts.options)) {}

Scaler::~Scaler() {
  stopping_.Notify();
  if (looks_.joinable()) looks_.join();
  if (asks_.joinable()) asks_.join();
}

std::optional<reconcile::Wish> Scaler::wish(const std::string& job) const {
  absl::MutexLock lock(&mutex_);
  const auto found = standing_.find(job);
  return found == standing_.end() ? std::nullopt : std::optional(found->second.wish);
}

void Scaler::ask() {
  if (const absl::Status status = measurements_->poll(); !status.ok()) {
    parts_.env.log->warning("Prometheus does not tell; summers stay as they are where that goes on", "error",
                            status.message());
  }
}

void Scaler::look() {
  std::vector<reconcile::Observed> jobs;
  for (const auto& job : parts_.cluster.jobs()) {
    if (!reconcile::wants_summers(*job) || job->status.phase != "Running") continue;
    auto session = parts_.sessions.state(reconcile::session_of(*job));
    if (!session.has_value() || !may_scale(*job, *session)) continue;
    jobs.push_back(parts_.cluster.observe(*job));
    jobs.back().candidates = nullptr;  // they are looked up for all jobs at once
    jobs.back().session = std::move(session);
  }
  std::vector<ScalingView> views =
      scaling_views(jobs, parts_.cluster.machines(), measurements_.get(), parts_.env.clock->now());
  std::vector<autoscale::Job> told;
  told.reserve(views.size());
  for (ScalingView& view : views) told.push_back(view.job);
  const absl::Duration now = parts_.env.clock->since_start();
  std::map<std::string, autoscale::Verdict> verdicts = autoscaler_.round(told, now);
  absl::MutexLock lock(&mutex_);
  std::map<std::string, Standing> standing;
  for (size_t i = 0; i < jobs.size(); ++i) {
    const std::string& key = told[i].key;
    Standing& next = standing[key] = std::move(standing_[key]);
    if (follow(jobs[i].job, std::move(views[i]), std::move(verdicts[key]), now, next)) parts_.queue.add(key);
  }
  standing_ = std::move(standing);
}

bool Scaler::follow(const types::TrainingJob& job, ScalingView view, autoscale::Verdict verdict, absl::Duration now,
                    Standing& standing) {
  reconcile::Wish& wish = standing.wish;
  const reconcile::Wish before = std::move(wish);
  wish = {};
  wish.attempt = job.status.attempt;
  wish.next_summer = job.status.next_summer;
  wish.spare_bits_per_second = std::move(view.spare_bits_per_second);
  // An addition stands until it is on record: the API server may have been away.
  const bool is_open = before.verdict.add.has_value() && before.attempt == wish.attempt &&
                       before.next_summer == wish.next_summer && now - standing.since < kFollowed;
  if (is_open && verdict.remove.empty() && !verdict.add.has_value()) verdict = before.verdict;
  if (verdict.add.has_value() && !is_open) standing.since = now;
  absl::flat_hash_map<uint32_t, absl::Duration> told;
  for (const autoscale::Removal& removal : verdict.remove) {
    const auto found = standing.told.find(removal.index);
    told[removal.index] = found == standing.told.end() ? now : found->second;
    if (now - told[removal.index] > kOverdue) wish.overdue.push_back(removal.index);
  }
  const bool is_new = told.size() != standing.told.size() || wish.overdue != before.overdue ||
                      verdict.code != before.verdict.code || verdict.wanted != before.verdict.wanted ||
                      verdict.add.has_value();
  standing.told = std::move(told);
  wish.verdict = std::move(verdict);
  return is_new;
}

}  // namespace gleaner::operation
