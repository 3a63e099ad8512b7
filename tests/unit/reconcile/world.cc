#include "tests/unit/reconcile/world.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "operator/reconcile/pauses.h"
#include "operator/reconcile/summer_placement.h"
#include "operator/reconcile/workers.h"

namespace gleaner::reconcile {

World::World(uint32_t workers) {
  job.meta.name = "digits";
  job.meta.ns = "team";
  job.meta.uid = "job-uid";
  job.meta.generation = 1;
  job.workers.replicas = workers;
  job.workers.pod_template = {
      {"spec", {{"containers", nlohmann::json::array({{{"name", "main"}, {"image", "train:1"}}})}}}};
}

Observation World::observe() {
  Observation observation;
  observation.job = job;
  observation.pods.assign(pods_.begin(), pods_.end());
  observation.plan = plan;
  observation.session = session;
  observation.scaling = scaling;
  observation.failing = failing;
  observation.summers_refused = summers_refused;
  observation.session_ended_for = session_ended_for;
  observation.creation_pause = creation_pause;
  observation.now = now;
  for (const auto& pod : pods_) {
    if (pod->node.empty()) continue;
    const auto found = nodes.find(pod->node);
    observation.nodes[pod->node] = found == nodes.end() ? NodeView{true, true, 0} : found->second;
  }
  if (needs_candidates(observation)) {
    asked_nodes = Workers(observation).nodes();
    observation.candidates = spare;
  }
  observation.fabric = fabric;
  return observation;
}

Actions World::look() {
  Actions actions = actions_of(decide(observe(), {"coordinator:7070", "gleaner:1", "low"}));
  carry_out(actions);
  return actions;
}

void World::carry_out(const Actions& actions) {
  if (actions.end_session.has_value()) {
    if (session.has_value()) ended_sessions.push_back(*actions.end_session);
    session.reset();
    session_ended_for = absl::ZeroDuration();
  }
  create(actions.create);
  create(actions.create_summers);
  for (const PodRelease& release : actions.release) pod(release.name).obstacles.gated = false;
  if (actions.rank_map.has_value()) rank_maps[(*actions.rank_map)["metadata"]["name"]] = *actions.rank_map;
  for (const PodRank& label : actions.rank_labels) pod(label.name).rank = label.rank;
  if (actions.plan.has_value()) plan = actions.plan;
  if (actions.session.has_value()) wanted_session = actions.session;
  for (const SummerRelease& release : actions.tell.release) released.push_back(release.index);
  for (const PodRemoval& removal : actions.remove) {
    PodView& going = pod(removal.name);
    EXPECT_EQ(going.uid, removal.uid);
    if (going.node.empty() || going.finished()) {
      erase(removal.name);
    } else {
      going.deletion = now + absl::Seconds(30);
    }
  }
  job_removed = job_removed || actions.remove_job;
  job.status = actions.status;
  events.insert(events.end(), actions.events.begin(), actions.events.end());
}

void World::create(const std::vector<nlohmann::json>& objects) {
  size_t created = 0;
  for (const nlohmann::json& object : objects) {
    if (created == creations_per_look) return;
    if (admits && !admits()) {
      may_create = now + pause_after(kRefusalPauses, ++refusals_, job.meta.uid);
      return;
    }
    nlohmann::json made = object;
    made["metadata"]["uid"] = absl::StrCat("uid-", ++uids_);
    made["metadata"]["creationTimestamp"] = api::format_time(now);
    const auto pod = parse_pod(made);
    ASSERT_TRUE(pod.ok()) << pod.status();
    ASSERT_FALSE(has(pod->name)) << pod->name << " is made twice";
    pods_.push_back(std::make_shared<PodView>(*pod));
    ++created;
  }
  if (created > 0) refusals_ = 0;
}

void World::settle() {
  for (int i = 0; i < 10; ++i) {
    const api::TrainingJobStatus before = job.status;
    const Actions actions = look();
    const bool still =
        actions.create.empty() && actions.create_summers.empty() && actions.release.empty() && actions.remove.empty();
    if (still && to_json(before) == to_json(job.status)) return;
  }
  FAIL() << "the decisions do not settle";
}

PodView& World::pod(const std::string& name) {
  for (const auto& pod : pods_) {
    if (pod->name == name) return *pod;
  }
  ADD_FAILURE() << "no pod " << name << " among " << names().size();
  static PodView none;
  return none;
}

bool World::has(const std::string& name) const {
  return std::any_of(pods_.begin(), pods_.end(), [&name](const auto& pod) { return pod->name == name; });
}

std::vector<std::string> World::names() const {
  std::vector<std::string> names;
  for (const auto& pod : pods_) names.push_back(pod->name);
  return names;
}

void World::run(const std::string& name, const std::string& node) {
  pod(name).node = node;
  pod(name).phase = PodView::Phase::kRunning;
}

void World::run_workers() {
  for (uint32_t i = 0; i < job.workers.replicas; ++i) {
    const std::string suffix = job.status.attempt == 0 ? "" : absl::StrCat("-r", job.status.attempt);
    run(absl::StrCat("digits-worker-", i, suffix), absl::StrCat("w", i));
  }
}

void World::exit(const std::string& name, int code, const std::string& reason) {
  PodView& ending = pod(name);
  ending.phase = code == 0 ? PodView::Phase::kSucceeded : PodView::Phase::kFailed;
  if (code != 0) ending.ending.exit = {"main", code, reason, now};
}

void World::erase(const std::string& name) {
  std::erase_if(pods_, [&name](const auto& pod) { return pod->name == name; });
}

const api::Condition* World::condition(const std::string& type) const {
  return api::find_condition(job.status.conditions, type);
}

bool World::holds(const std::string& type) const {
  const api::Condition* found = condition(type);
  return found != nullptr && found->status;
}

bool World::noted(const std::string& reason) const {
  return std::any_of(events.begin(), events.end(), [&reason](const EventNote& note) { return note.reason == reason; });
}

}  // namespace gleaner::reconcile
