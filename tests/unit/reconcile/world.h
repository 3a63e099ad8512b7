// A job and its pods as the operator observes them, moved on by hand and by what decide() decides: what a cluster would
// do with it is said by the test, step by step.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/reconcile/decide.h"

namespace gleaner::reconcile {

class World {
 public:
  explicit World(uint32_t workers = 2);

  // One look; what it decides happens: pods appear, gates open, pods go (at once, if they have no node), status and
  // plan are kept.
  Decision look();
  // Looks until nothing is created, released, removed or changed any more.
  void settle();

  PodView& pod(const std::string& name);  // fails the test if it is not there
  bool has(const std::string& name) const;
  std::vector<std::string> names() const;
  void run(const std::string& name, const std::string& node);                         // bound and running
  void run_workers();                                                                 // on nodes w0, w1, ...
  void exit(const std::string& name, int code, const std::string& reason = "Error");  // now
  void erase(const std::string& name);

  const types::Condition* condition(const std::string& type) const;
  bool holds(const std::string& type) const;
  const std::string& phase() const { return job.status.phase; }
  bool noted(const std::string& reason) const;  // an event, in any look so far

  types::TrainingJob job;
  std::optional<types::ReductionPlan> plan;
  std::optional<coordinator::JobState> session;
  std::optional<Wish> wish;
  absl::Duration session_ended_for;
  std::map<std::string, NodeView> nodes;
  std::vector<placement::Candidate> spare;
  absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  std::vector<std::string> ended_sessions;
  std::vector<EventNote> events;
  std::optional<coordinator::Options> wanted_session;
  std::vector<uint32_t> released;        // summers, by the session
  std::vector<std::string> asked_nodes;  // workers' nodes that candidates were asked for
  bool job_removed = false;

 private:
  void carry_out(const Decision& decision);

  std::vector<std::shared_ptr<PodView>> pods_;
  int uids_ = 0;
};

}  // namespace gleaner::reconcile
