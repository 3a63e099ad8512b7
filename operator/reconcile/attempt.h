// One look at a job, while it is being decided: what is observed, what has been decided so far, and the steps of
// deciding, each of which may be the last. Private to this folder.
#pragma once

#include <string>
#include <vector>

#include "operator/reconcile/decide.h"
#include "operator/reconcile/failure.h"

namespace gleaner::reconcile {

class Attempt {
 public:
  Attempt(const Observed& observed, const Settings& settings);

  Decision decide() &&;

 private:
  // decide.cc
  bool settled();  // already over, being deleted, suspended or out of time
  bool is(const char* condition) const;
  void set(const char* type, bool status, std::string reason, std::string message);
  void note(bool warning, std::string reason, std::string message, std::string cause = "");
  void look_again(absl::Duration delay);
  void count_members();

  // decide_end.cc
  void stop_running(const std::string& reason, const std::string& message);
  void succeed();
  void fail(std::string reason, std::string message);
  void clean_up();
  void suspend();
  void resume();
  void restart(const Failure& failure);
  void begin_next_attempt(const std::string& why);
  void remove_pods(bool finished_too);
  void remove(const PodView& pod);

  // decide_start.cc
  bool may_start();
  void make_workers();
  void launch();
  void explain_waiting();
  void give_up_if_late();

  // decide_run.cc
  void run();
  void keep_session();
  void report();
  void report_stall(const std::string& stall);

  // decide_summers.cc
  bool place_summers();
  bool begin_with_summers(const std::vector<const PodView*>& summers);
  void create_summers(const std::vector<placement::Candidate>& machines, const std::string& cause,
                      const std::string& why);
  void wait_for_those_alive();
  void change_summers();
  void bury(const PodView& summer);
  bool was_told(const PodView& summer) const;  // to go
  void follow_wish(const std::vector<const PodView*>& alive);
  void remove_summer(const PodView& summer, const autoscale::Removal& removal);
  void follow_bandwidths();
  void report_summers();
  bool has_begun() const;

  bool launched() const { return is("Created"); }
  bool all_bound() const;
  bool all_running() const;

  const Observed& observed_;
  const types::TrainingJob& job_;
  const Settings& settings_;
  const absl::Time now_;
  std::vector<const PodView*> workers_;  // by index
  Decision decision_;
  types::TrainingJobStatus& status_ = decision_.status;
};

}  // namespace gleaner::reconcile
