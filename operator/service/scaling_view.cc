#include "operator/service/scaling_view.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "common/fabric/step_bound.h"
#include "operator/reconcile/bandwidth.h"
#include "operator/reconcile/failure.h"
#include "operator/reconcile/names.h"
#include "operator/reconcile/summer_choice.h"
#include "operator/reconcile/summers.h"
#include "operator/reconcile/workers.h"

namespace gleaner::operation {
namespace {

using placement::Machine;
using reconcile::PodView;

// A summer is not worth its machine if less than this share of its bandwidth is left.
constexpr double kLeastShare = 0.1;

// Returns a copy of the machine without this summer.
Machine without(const Machine& machine, const PodView& summer) {
  Machine freed = machine;
  freed.commitment.summers -= std::min(1U, freed.commitment.summers);
  freed.commitment.summer_cpus = std::max(0.0, freed.commitment.summer_cpus - summer.cpus);
  freed.commitment.summer_bits_per_second =
      std::max(0.0, freed.commitment.summer_bits_per_second - summer.bits_per_second);
  return freed;
}

// Returns whether an agent has reported on the machine recently.
bool has_recent_profile(const Machine& machine, absl::Time now) {
  return machine.profile != nullptr && now - machine.profile->status.observed_time <= placement::kProfileLife;
}

class Views {
 public:
  Views(const Machines& machines, const Measurements* measurements, absl::Time now)
      : machines_(machines), measurements_(measurements), now_(now) {
    for (const auto& machine : machines) by_name_[machine->name] = machine.get();
  }

  ScalingView view(const reconcile::Observation& observation) const;
  void add_contested(const std::vector<reconcile::Observation>& all, const reconcile::Observation& observation,
                     autoscale::Job& job) const;

 private:
  placement::SummerRequest request_of(const reconcile::Observation& observation) const;
  void add_summers(const reconcile::Observation& observation, ScalingView& view) const;
  autoscale::Candidate measured(const placement::Candidate& candidate) const;

  const Machines& machines_;
  const Measurements* const measurements_;
  const absl::Time now_;
  absl::flat_hash_map<std::string, const Machine*> by_name_;
};

std::vector<const PodView*> workers_of(const reconcile::Observation& observation) {
  return members_of_attempt(observation, reconcile::kWorker, observation.job.workers.replicas);
}

placement::SummerRequest Views::request_of(const reconcile::Observation& observation) const {
  std::vector<std::string> nodes;
  for (const PodView* worker : workers_of(observation)) {
    if (worker != nullptr) nodes.push_back(worker->node);
  }
  return reconcile::summer_request(observation.job, nodes);
}

void Views::add_summers(const reconcile::Observation& observation, ScalingView& view) const {
  placement::SummerRequest request = request_of(observation);
  for (const PodView* pod : summers_of_attempt(observation)) {
    if (pod->finished()) continue;
    autoscale::Summer summer;
    summer.index = pod->index;
    summer.node = pod->node;
    summer.bits_per_second = reconcile::assumed_bits_per_second(observation, {pod}).front();
    summer.running = pod->phase == PodView::Phase::kRunning;
    summer.leaving = pod->deletion.has_value();
    summer.age = now_ - pod->created;
    const auto machine = by_name_.find(pod->node);
    if (machine != by_name_.end() && has_recent_profile(*machine->second, now_)) {
      request.min_bits_per_second = kLeastShare * pod->bits_per_second;
      const placement::Verdict verdict = judge_summer(without(*machine->second, *pod), request, now_);
      summer.suitability = autoscale::Suitability{verdict.fits, verdict.refusal.why_not};
      if (verdict.fits) {
        view.spare_bits_per_second.emplace_back(pod->index, verdict.bits_per_second);
        summer.bits_per_second = std::min(summer.bits_per_second, verdict.bits_per_second);
      }
    }
    view.job.summers.push_back(std::move(summer));
  }
}

autoscale::Candidate Views::measured(const placement::Candidate& candidate) const {
  autoscale::Candidate machine{candidate.node, candidate.bits_per_second, {}, {}};
  if (measurements_ != nullptr) {
    Measurements::OfNode node = measurements_->node(candidate.node);
    machine.spare_cpus = node.spare_cpus;
    machine.spare_bits_per_second = node.spare_bits_per_second;
  }
  return machine;
}

ScalingView Views::view(const reconcile::Observation& observation) const {
  ScalingView view;
  autoscale::Job& job = view.job;
  const api::SummersWanted& wanted = observation.job.communication.summers;
  job.key = observation.job.meta.key();
  job.min = wanted.min;
  job.max = wanted.max;
  job.worker_bits_per_second = assumed_bits_per_second(observation, workers_of(observation));
  const coordinator::Summary& summary = observation.session->summary;
  job.bytes_per_step = summary.recent().bytes_per_step;
  job.push_ratio = summary.push_ratio;
  for (const PodView* worker : workers_of(observation)) {
    if (worker != nullptr) job.priority = worker->priority;
  }
  if (measurements_ != nullptr) {
    Measurements::OfJob of_job = measurements_->job(job.key);
    job.step_seconds = of_job.step_seconds;
    job.exposed_seconds = of_job.exposed_seconds;
  }
  add_summers(observation, view);
  placement::SummerRequest request = request_of(observation);
  job.summer_cpus = request.cpus;
  if (job.summers.size() >= job.max) return view;
  for (const autoscale::Summer& summer : job.summers) {
    if (!summer.node.empty()) request.summer_nodes.insert(summer.node);
  }
  std::vector<const Machine*> pointers;
  for (const auto& machine : machines_) pointers.push_back(machine.get());
  std::vector<placement::Candidate> candidates = summer_candidates(pointers, request, now_);
  reconcile::put_near_first(*observation.fabric, nodes_of(workers_of(observation)), candidates);
  for (const placement::Candidate& candidate : candidates) job.candidates.push_back(measured(candidate));
  return view;
}

// Adds machines that would be suitable if a summer of another job left, for a job without candidates.
void Views::add_contested(const std::vector<reconcile::Observation>& all, const reconcile::Observation& observation,
                          autoscale::Job& job) const {
  if (!job.candidates.empty() || job.summers.size() >= job.max) return;
  placement::SummerRequest request = request_of(observation);
  for (const autoscale::Summer& summer : job.summers) {
    if (!summer.node.empty()) request.summer_nodes.insert(summer.node);
  }
  for (const reconcile::Observation& other : all) {
    if (other.job.meta.key() == job.key) continue;
    for (const PodView* pod : summers_of_attempt(other)) {
      const auto machine = by_name_.find(pod->node);
      if (machine == by_name_.end() || pod->finished() || pod->deletion.has_value()) continue;
      const placement::Verdict verdict = judge_summer(without(*machine->second, *pod), request, now_);
      if (!verdict.fits) continue;
      job.contested.push_back({measured({pod->node, verdict.bits_per_second}), other.job.meta.key(), pod->index});
    }
  }
}

// Sets the fabric of a job where known uplinks part its machines and those that its summers could get.
void add_network(const reconcile::Observation& observation, autoscale::Job& job) {
  std::vector<std::string> nodes = nodes_of(workers_of(observation));
  for (const autoscale::Summer& summer : job.summers) nodes.push_back(summer.node);
  for (const autoscale::Candidate& candidate : job.candidates) nodes.push_back(candidate.node);
  for (const autoscale::Contested& contested : job.contested) nodes.push_back(contested.machine.node);
  if (!has_known_uplinks(*observation.fabric, nodes)) return;
  nodes.resize(job.worker_bits_per_second.size());
  job.worker_nodes = std::move(nodes);
  job.fabric = observation.fabric;
}

}  // namespace

bool may_scale(const api::TrainingJob& job, const coordinator::JobState& session) {
  using Phase = coordinator::JobState::Phase;
  return reconcile::wants_summers(job) && session.phase == Phase::kRunning && session.epoch > 0 &&
         !session.outcome.has_value();
}

std::vector<ScalingView> scaling_views(const std::vector<reconcile::Observation>& jobs, const Machines& machines,
                                       const Measurements* measurements, absl::Time now) {
  const Views views(machines, measurements, now);
  std::vector<ScalingView> made;
  made.reserve(jobs.size());
  for (const reconcile::Observation& observation : jobs) {
    made.push_back(views.view(observation));
    views.add_contested(jobs, observation, made.back().job);
    add_network(observation, made.back().job);
  }
  return made;
}

}  // namespace gleaner::operation
