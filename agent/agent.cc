#include "agent/agent.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "agent/probe/speed.h"
#include "agent/publish/profile.h"
#include "common/base/backoff.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"

namespace gleaner::agent {
namespace {

constexpr absl::Duration kStale = absl::Minutes(2);  // readers ignore older profiles
constexpr absl::Duration kWriteTimeout = absl::Seconds(10);
constexpr absl::Duration kRetryFirst = absl::Seconds(2);

}  // namespace

Agent::Agent(const Env& env, kube::Client& client, AgentOptions options, prometheus::Registry& registry)
    : env_(env),
      options_(std::move(options)),
      metrics_(registry, options_.node),
      sampler_(options_.source, options_.cgroup_root),
      estimator_({.margin = options_.margin}),
      writer_(client.bounded(kWriteTimeout, &cancel_)),
      publisher_(*writer_) {}

Agent::~Agent() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  cancel_.cancel();
  if (sampling_.joinable()) sampling_.join();
  if (publishing_.joinable()) publishing_.join();
}

absl::Status Agent::begin(kube::Client& client, prometheus::Registry& registry) {
  GLN_RETURN_IF_ERROR(sampler_.discover());
  tell_of_nvml();
  nodes_ =
      kube::Cache<publish::NodeState>::start(env_, client,
                                             {.resource = kube::nodes(),
                                              .selector = {.fields = absl::StrCat("metadata.name=", options_.node)},
                                              .decode = publish::parse_node});
  pods_ = kube::Cache<publish::PodOnNode>::start(env_, client,
                                                 {.resource = kube::pods(),
                                                  .selector = {.fields = absl::StrCat("spec.nodeName=", options_.node)},
                                                  .decode = publish::parse_pod});
  events_ = kube::EventRecorder::start(env_, client, publish::kFieldManager, options_.node);
  if (options_.measure.has_value()) {
    GLN_ASSIGN_OR_RETURN(measurements_, Measurements::start(env_, client, *options_.measure, options_.node, registry));
  }
  sampling_ = std::thread([this] { sample_forever(); });
  publishing_ = std::thread([this] { publish_forever(); });
  return absl::OkStatus();
}

std::string Agent::why_not_ready() const {
  absl::MutexLock lock(&mutex_);
  if (!published_at_.has_value()) {
    return last_error_.empty() ? "the profile was not written yet" : absl::StrCat("no profile yet: ", last_error_);
  }
  const absl::Duration age = env_.clock->since_start() - *published_at_;
  if (age <= kStale) return "";
  return absl::StrCat("the profile was written ", absl::FormatDuration(age), " ago: ", last_error_);
}

// Waits for `time`, or until `done` returns true if that is earlier. Returns false if the agent stops.
bool Agent::pause(absl::Duration time, bool (Agent::*done)() const) {
  absl::MutexLock lock(&mutex_);
  const auto ready = [this, done]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return stopping_ || (done != nullptr && (this->*done)());
  };
  mutex_.AwaitWithTimeout(absl::Condition(&ready), time);
  return !stopping_;
}

void Agent::sample_forever() {
  name_this_thread("gln-sample");
  absl::Duration next_discovery = env_.clock->since_start() + options_.discover_period;
  do {
    const absl::Duration now = env_.clock->since_start();
    if (now >= next_discovery) {
      const absl::Status found = sampler_.discover();
      if (!found.ok()) env_.log->warning("the machine's devices can't be read again", "why", found.message());
      tell_of_nvml();
      next_discovery = now + options_.discover_period;
    }
    sample(now);
  } while (pause(options_.sample_period, nullptr));
}

void Agent::sample(absl::Duration now) {
  const std::shared_ptr<const publish::NodeState> node = nodes_->get(options_.node);
  if (node == nullptr || !pods_->synced()) return;  // without the pods' requests there is no estimate
  std::vector<publish::PodOnNode> pods;
  for (const auto& pod : pods_->list()) pods.push_back(*pod);
  probe::SpeedClaims claims = sampler_.claims();
  claims.flag = options_.bits_per_second;
  claims.label = node->bandwidth_label;
  if (measurements_ != nullptr) claims.measured = measurements_->speed().bits_per_second();
  const probe::Speed speed = probe::choose_speed(claims);
  if (measurements_ != nullptr) {
    measurements_->speed().set_needed(speed.source == api::SpeedSource::kUnknown ||
                                      speed.source == api::SpeedSource::kMeasured);
  }
  const spare::Estimate estimate = estimator_.update(sampler_.sample(now, *node, pods, speed));
  if (++samples_ < 2) return;  // rates need two samples
  Latest latest{*node, {}, speed.doubtful};
  latest.status =
      publish::make_status(sampler_.machine(), estimate, speed, options_.version, conditions_, env_.clock->now());
  conditions_ = latest.status.conditions;
  if (measurements_ != nullptr) {
    measurements_->set_nic(latest.status.bits_per_second, latest.status.used_bits_per_second);
    measurements_->show_metrics();
    measurements_->show(latest.status);
  }
  metrics_.show(latest.status, estimate, sampler_.machine().nvml_failures.size());
  absl::MutexLock lock(&mutex_);
  latest_ = std::move(latest);
}

void Agent::publish_forever() {
  name_this_thread("gln-publish");
  Backoff backoff(*env_.random, kRetryFirst, options_.publish_period);
  if (!pause(absl::InfiniteDuration(), &Agent::has_something)) return;
  while (true) {
    const absl::Status written = publish_latest();
    metrics_.count_write(written);
    if (!written.ok()) {
      if (!absl::IsCancelled(written)) env_.log->warning("the profile was not written", "why", written.message());
      if (!pause(backoff.next(), nullptr)) return;
      continue;
    }
    backoff.reset();
    // The jitter spreads the writes of agents that started at the same time.
    if (!pause(jittered(*env_.random, options_.publish_at_most), nullptr)) return;
    if (!pause(options_.publish_period - options_.publish_at_most, &Agent::has_news)) return;
  }
}

absl::Status Agent::publish_latest() {
  Latest latest;
  {
    absl::MutexLock lock(&mutex_);
    latest = *latest_;
  }
  absl::Status status = restore_measurements(latest.status);
  if (status.ok()) status = publisher_.publish(latest.node, latest.status);
  if (status.ok()) status = publisher_.advertise(latest.node, options_.summers_per_node);
  if (status.ok()) tell_of_speed(latest);
  absl::MutexLock lock(&mutex_);
  last_error_ = std::string(status.message());
  if (status.ok()) {
    published_ = std::move(latest.status);
    published_at_ = env_.clock->since_start();
  }
  return status;
}

// Before the first write, restores the latencies and bandwidths that the profile has, so that the write keeps them.
absl::Status Agent::restore_measurements(api::NodeProfileStatus& status) {
  if (measurements_ == nullptr) return absl::OkStatus();
  GLN_RETURN_IF_ERROR(measurements_->restore());
  measurements_->show(status);
  return absl::OkStatus();
}

void Agent::tell_of_nvml() {
  const std::optional<std::string> trouble = nvml_report_.changed(sampler_.machine());
  if (!trouble.has_value()) return;
  if (trouble->empty()) {
    env_.log->info("NVML reads all GPUs again");
  } else {
    env_.log->warning("NVML does not read all GPUs", "why", *trouble);
  }
}

// Records an Event when the speed becomes doubtful for a new reason, and another when it is no longer doubtful.
void Agent::tell_of_speed(const Latest& latest) {
  const api::Condition* known = api::find_condition(latest.status.conditions, "SpeedKnown");
  const bool wrong = known->reason == "FasterThanClaimed" || latest.speed_doubtful;
  const std::string reason = wrong ? known->reason : "";
  if (reason == told_reason_) return;
  const kube::ObjectReference node{"v1", "Node", "", latest.node.name, latest.node.uid};
  if (wrong) {
    env_.log->warning("the NIC's speed is doubtful", "reason", reason, "why", known->message);
    events_->warning(node, reason, known->message);
  } else {
    events_->normal(node, "SpeedBelieved", known->message);
  }
  told_reason_ = reason;
}

absl::StatusOr<std::unique_ptr<Agent>> Agent::start(const Env& env, kube::Client& client, AgentOptions options,
                                                    prometheus::Registry& registry) {
  auto agent = std::unique_ptr<Agent>(new Agent(env, client, std::move(options), registry));
  GLN_RETURN_IF_ERROR(agent->begin(client, registry));
  return agent;
}

absl::StatusOr<api::NodeProfile> profile_once(const Env& env, const AgentOptions& options, absl::Duration pause) {
  Sampler sampler(options.source, options.cgroup_root);
  GLN_RETURN_IF_ERROR(sampler.discover());
  publish::NodeState node;
  node.name = options.node;
  node.allocatable_cpus = sampler.machine().processors.cpus;
  node.allocatable_memory_bytes = static_cast<double>(sampler.machine().processors.memory_bytes);
  probe::SpeedClaims claims = sampler.claims();
  claims.flag = options.bits_per_second;
  const probe::Speed speed = probe::choose_speed(claims);
  spare::Estimator estimator({.margin = options.margin});
  estimator.update(sampler.sample(env.clock->since_start(), node, {}, speed));
  absl::SleepFor(pause);
  const spare::Estimate estimate = estimator.update(sampler.sample(env.clock->since_start(), node, {}, speed));
  api::NodeProfile profile;
  profile.meta.name = options.node;
  profile.status = publish::make_status(sampler.machine(), estimate, speed, options.version, {}, env.clock->now());
  return profile;
}

}  // namespace gleaner::agent
