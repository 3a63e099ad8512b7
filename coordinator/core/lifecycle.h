// Lifecycle moves a job through its phases (phase.h): it begins the job, takes up a job of another coordinator, brings
// the next plan in force, and ends the job.
//
// Core calls Lifecycle once an event has changed the members or the plans. Each function checks whether the job can go
// on to its next state, and does nothing if it can't. It carries out the findings of the parts: the loss of a summer
// causes the next plan, and the loss of a rank fails the job. Once the job has ended no function has an effect. Pure;
// belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/core/parts.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/messages.h"

namespace gleaner::coordinator {

class Lifecycle {
 public:
  // `parts` must outlive this object.
  explicit Lifecycle(Parts* parts) : parts_(*parts) {}

  void carry_out(const Finding& finding, absl::Duration now, Actions& actions);
  // Removes a summer, or fails the job. Nothing happens if the summer takes no part.
  void lose(const Loss& loss, absl::Duration now, Actions& actions);
  void fail(const Failure& failure, Actions& actions);
  void fail_if(const std::optional<Failure>& failure, Actions& actions);
  // Tells every member that the job has failed, if `has_ended`: a function of Outcome has ended it.
  void announce_failure(bool has_ended, Actions& actions);

  // Waits for a member that is silent or whose stream broke to return, and returns true. Returns false, and does
  // nothing, if the member can't return.
  bool wait_for_return(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);

  // Begins the job, by the proposal of its first plan, once all members have joined.
  void begin_if_all_joined(absl::Duration now, Actions& actions);
  // Ends the re-attachment once all members are back: they go on under the plan that they return with.
  void finish_reattachment_if_complete(absl::Duration now, Actions& actions);

  // Takes tensors and operations that a rank declares, into the next plan once all ranks have declared them.
  void declare(uint32_t rank, const std::vector<plan::Tensor>& tensors, const std::vector<plan::Operation>& operations,
               absl::Duration now, Actions& actions);
  // Fails the job if a rank has left, or waits for another sum, that has not declared a tensor which others have.
  void check_declarations(absl::Duration now, Actions& actions);
  // Proposes the next plan if there is a reason for one.
  void propose_next(absl::Duration now, Actions& actions);
  // Asks for the first models of strategies once all workers have measured the times of messages.
  void model_if_measured(Actions& actions);
  // Commits the proposed plan once all its members have acknowledged it, and proposes the plan after that.
  void commit_if_acknowledged(absl::Duration now, Actions& actions);

  // Lets a rank leave cleanly.
  void leave(uint32_t rank, absl::Duration now, Actions& actions);
  // Goes on after a rank has left, or a worker has ended, cleanly. Ends the job with the last one.
  void go_on_after_leave(absl::Duration now, Actions& actions);

 private:
  void set_message_times();  // for the next models
  void remove_summer(const Loss& loss, absl::Duration now, Actions& actions);

  Parts& parts_;
};

}  // namespace gleaner::coordinator
