// Reattachment takes up a job that began under another coordinator, from the state that its members hold
// (docs/protocol.md#re-attachment).
//
// The re-attachment begins when a member with a plan in force returns, and ends once that plan is known and every
// member of it is back. Reattachment asks a rank with the highest epoch for its plan (Recall), or a summer if no rank
// has a plan. All ranks must return. Summers that are still missing 6 s after the last rank came back are overdue.
// Reattachment keeps declarations, reports of unreachable summers, and clean Leaves of ranks, that arrive meanwhile
// until the end.
//
// Reattachment changes the seats of summers so that they match the plan. It sends Recall, and Rejected to summers that
// the plan does not include. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/roster/findings.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"

namespace gleaner::coordinator {

class Reattachment {
 public:
  struct Declared {
    uint32_t seat = 0;
    std::vector<plan::Tensor> tensors;
    std::vector<plan::Operation> operations;
  };
  // A rank can't reach a summer.
  struct Unreachable {
    uint32_t epoch = 0;  // of the plan that the rank follows
    std::string why;
  };
  // The findings of a re-attachment that has ended.
  struct Result {
    std::shared_ptr<const plan::Plan> plan;       // in force
    std::vector<Declared> declared;               // in the order in which the declarations came
    std::vector<uint32_t> leaving;                // the seats of ranks that leave cleanly, in order
    std::map<uint32_t, Unreachable> unreachable;  // by index in this plan
  };

  // The pointers must outlive this object.
  Reattachment(const Options* options, Roster* roster) : options_(*options), roster_(*roster) {}

  bool is_under_way() const { return under_way_; }
  // Returns the plan with the highest epoch that a member has sent so far; null: none.
  const plan::Plan* plan() const { return plan_.get(); }
  bool lacks_plan() const { return under_way_ && plan_ == nullptr; }
  // Returns the seat of a member that was asked for its plan and has not answered.
  std::optional<uint32_t> asked() const { return asked_; }

  void begin(Actions& actions);
  // Asks a member for its plan if the member's plan has a higher epoch than all plans that are known or asked for.
  void ask_for_plan(Actions& actions);
  // Returns whether a plan of this epoch is later than the known one.
  bool wants_plan(uint32_t epoch) const { return under_way_ && (plan_ == nullptr || epoch > plan_->epoch); }
  // Takes the plan that a member sends in answer to Recall. Requires wants_plan(). Internal: the plan is not the one
  // that the member said it follows.
  absl::Status on_plan(uint32_t seat, plan::Plan plan, absl::Duration now, Actions& actions);
  // Rejects a returning summer that `plan` does not include. The summer may join as a new one. If the plan has another
  // summer at this place, the job waits for that one during re-attachment.
  void reject_summer(uint32_t seat, const plan::Plan& plan, absl::Duration now, Actions& actions);
  // Returns whether the member in this seat is a summer that the plan of the job does not include. The member has
  // returned during re-attachment, or later to the job with the plan `in_force`.
  bool is_left_out(uint32_t seat, const plan::Plan& in_force) const;
  // Returns why the job fails if this returning rank and others follow different plans of one epoch. Parameters: see
  // is_left_out().
  std::optional<Failure> check_digest(uint32_t seat, const plan::Plan& in_force) const;
  // Returns whether the time for the missing summers to return is over. To be called regularly.
  bool are_summers_overdue(absl::Duration now);
  bool is_complete() const;

  void keep(Declared declared) { declared_.push_back(std::move(declared)); }
  // A rank that follows the plan of `epoch` asks to leave. If the plan in force turns out to be a later one, the rank
  // stays: it gets that plan, and sends Leave again.
  void keep_leave(uint32_t rank, uint32_t epoch);
  // Returns whether a Leave of this rank is kept.
  bool wants_to_leave(uint32_t seat) const { return under_way_ && !roster_.is_summer(seat) && roster_[seat].leaving; }
  // Returns whether reports about this plan index are kept: it may be the index of a summer in the plan in force, which
  // is not known yet.
  bool keeps_reports_of(uint32_t member) const {
    return under_way_ && member >= options_.workers && member < plan::kMaxMembers;
  }
  // The report of the latest plan counts where several reports are about one plan index.
  void keep_unreachable(uint32_t member, Unreachable report);
  // Ends the re-attachment. Requires is_complete().
  Result finish();

 private:
  std::optional<uint32_t> find_contradiction(uint32_t seat) const;
  void seat_summers(const plan::Plan& plan, absl::Duration now, Actions& actions);

  const Options& options_;
  Roster& roster_;
  bool under_way_ = false;
  std::optional<uint32_t> asked_;
  std::shared_ptr<const plan::Plan> plan_;
  // Since when only summers are missing; none: a rank or the plan is missing.
  std::optional<absl::Duration> ranks_back_;
  std::vector<Declared> declared_;
  std::map<uint32_t, Unreachable> unreachable_;
};

// Returns whether `plan` includes the returning summer in this seat, at this place, and the summer follows this plan or
// an earlier one.
bool is_summer_of(const plan::Plan& plan, const Roster& roster, uint32_t seat);

}  // namespace gleaner::coordinator
