// World: a job and its pods as the operator observes them. It carries out the decisions of decide(). A test acts as the
// cluster, step by step.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/reconcile/decide.h"
#include "operator/reconcile/status_update.h"
#include "tests/unit/reconcile/actions.h"

namespace gleaner::reconcile {

class World {
 public:
  explicit World(uint32_t workers = 2);

  Observation observe();
  // Calls decide() once and carries out its decision: pods are created, gates open, pods are removed (at once, if they
  // have no node or have finished), status and plan are stored. Returns the actions.
  Actions look();
  // Calls look() until it creates, releases, removes and changes nothing more.
  void settle();

  PodView& pod(const std::string& name);  // fails the test if there is no such pod
  bool has(const std::string& name) const;
  std::vector<std::string> names() const;
  void run(const std::string& name, const std::string& node);  // binds the pod to the node and lets it run
  void run_workers();                                          // runs the workers on nodes w0, w1, ...
  void exit(const std::string& name, int code, const std::string& reason = "Error");
  void erase(const std::string& name);

  const api::Condition* condition(const std::string& type) const;
  bool holds(const std::string& type) const;
  const std::string& phase() const { return job.status.phase; }
  bool noted(const std::string& reason) const;  // whether any look() so far emitted an Event with this reason

  api::TrainingJob job;
  std::optional<api::ReductionPlan> plan;
  std::optional<coordinator::JobState> session;
  std::optional<ScalingRequest> scaling;
  std::optional<Failing> failing;
  std::optional<SummersRefused> summers_refused;
  absl::Duration session_ended_for, creation_pause;
  std::map<std::string, NodeView> nodes;
  std::vector<placement::Candidate> spare;
  std::shared_ptr<const fabric::Fabric> fabric = std::make_shared<const fabric::Fabric>();
  std::map<std::string, nlohmann::json> rank_maps;  // ConfigMaps with ranks, by name
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  std::vector<std::string> ended_sessions;
  std::vector<EventNote> events;
  // A cluster that admits no pod while this returns false. The World then notes when the operator may try again.
  std::function<bool()> admits;
  size_t creations_per_look = SIZE_MAX;
  absl::Time may_create = absl::InfinitePast();
  std::optional<coordinator::Options> wanted_session;
  std::vector<uint32_t> released;        // summers that the session was told to release
  std::vector<std::string> asked_nodes;  // the workers' nodes for which candidates were requested
  bool job_removed = false;

 private:
  void carry_out(const Actions& actions);
  void create(const std::vector<nlohmann::json>& objects);

  std::vector<std::shared_ptr<PodView>> pods_;
  int uids_ = 0;
  uint32_t refusals_ = 0;  // in a row
};

// Returns an update that changes nothing yet.
inline StatusUpdate update_of(const Observation& observation) { return {observation.job, observation.now}; }

}  // namespace gleaner::reconcile
