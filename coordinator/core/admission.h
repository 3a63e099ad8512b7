// Admission decides which members a job admits, assigns seats to them, and welcomes them.
//
// The *session* of a job is a random id that Welcome tells to members. A returning member shows its session, so
// Admission recognizes members of another run. A coordinator that takes up a job keeps the job's session.
//
// A member that wants to join has no state of the job. A member that returns follows a plan or has prepared one
// (Resume). A status that is not OK is the reason for which the member is rejected: after Unavailable the member tries
// again, after Aborted it joins as a new member. The caller then calls reject(). `ending`: a rank has left cleanly.
//
// A new member is admitted in two steps, decide() and seat_new(), since the caller may have to remove an earlier member
// of the seat between them. Pure; belongs to a Core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "coordinator/core/reattachment.h"
#include "coordinator/planning/planning.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/roster/roster.h"
#include "coordinator/status/phase.h"

namespace gleaner::coordinator {

// The relation of a job's core to other coordinators of the job, and to the cores of earlier rounds.
struct Origin {
  // The session of a job that begins in this core. Empty: no other coordinator can take up the job, and members that
  // lose this coordinator do not look for another one.
  std::string session;
  bool may_resume = false;  // the job may have begun under another coordinator
  uint32_t epoch = 0;       // highest epoch that an earlier core of this job used: the first plan's epoch is above it
  uint64_t term = 0;        // of this coordinator; a coordinator that replaces it has a higher term
};

class Admission {
 public:
  // The answer to a new member. It may take `seat`, unless it is lost.
  struct Decision {
    enum class Kind {
      kJoins,
      // The member is a summer that joins the running job, or that the proposed first plan does not include.
      kJoinsLate,
      kIsLost,  // the member of `seat` was expected to return with its state and has lost that state; `why` says how
    };
    Kind kind = Kind::kJoins;
    uint32_t seat = 0;
    bool replaces = false;  // the seat's member is away and must be removed first; only for kJoinsLate
    const char* why = "";   // only for kIsLost
  };

  // The pointers must outlive this object.
  Admission(const Options* options, Origin origin, Roster* roster, const Planning* planning,
            const Reattachment* reattachment)
      : options_(*options),
        origin_(std::move(origin)),
        roster_(*roster),
        planning_(*planning),
        reattachment_(*reattachment),
        session_(origin_.session) {}

  const std::string& session() const { return session_; }
  bool may_resume() const { return origin_.may_resume; }
  // Returns whether members look for another coordinator of this job after they have lost this one.
  bool may_members_return() const { return !session_.empty(); }

  // Returns the number of members that were rejected.
  uint32_t rejected() const { return rejected_; }

  // Decides whether a member that has no state of the job may join. May add a seat for a summer that joins late.
  absl::StatusOr<Decision> decide(const Identity& identity, bool ending);
  // Assigns the seat of `decision` to the member, and welcomes it under `session`. Before the job begins, also rejects
  // the members that this one can't reach, so that they come again.
  absl::Status seat_new(const Decision& decision, StreamId stream, const Identity& identity, const std::string& session,
                        bool ending, absl::Duration now, Actions& actions);
  // Rejects a member that was not admitted.
  void reject(StreamId stream, const absl::Status& why, Actions& actions);
  // Stops waiting for a summer that has ended before it joined. Returns whether the job had waited for it.
  bool stop_waiting_for(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);
  // See Core::set_summers().
  absl::Status set_summers(uint32_t summers, Phase phase, Actions& actions);

  // Returns OK if this coordinator is the one that a returning member looks for.
  absl::Status check_coordinator(const Resume& resume) const;
  // Returns the session for the Welcome to a returning member that has no plan in force, before the job begins. This is
  // the member's old session while another member may still return with a plan of that session in force.
  const std::string& session_for(const Resume& resume) const;
  // Assigns a seat to a returning member that belongs to this run of the job and follows no later plan than this
  // coordinator. Returns the seat.
  absl::StatusOr<uint32_t> seat_again(StreamId stream, const Identity& identity, const Resume& resume,
                                      absl::Duration now);
  // Welcomes a returning member.
  void welcome_back(uint32_t seat, bool ending, Actions& actions);

  // Continues the job under `session`. Rejects the summers that have joined so far: the plan in force is not known yet,
  // and it may lack them or give them other seats. Returns the first rank that has lost its state, if there is one.
  std::optional<uint32_t> take_up(const std::string& session, absl::Duration now, Actions& actions);

  // Sends a second Welcome to each member whose first one named another session or number than the job begins with.
  void correct_welcomes(Actions& actions);
  // Sends the outcome to a member whose stream was broken when the job ended.
  absl::Status send_outcome(StreamId stream, const std::optional<Resume>& resume, const absl::Status& outcome,
                            Actions& actions) const;

  static constexpr char kStateIsLost[] = "its process was started again, and has lost the state of the training";

 private:
  bool has_begun() const { return reattachment_.is_under_way() || planning_.has_plan(); }
  absl::StatusOr<Decision> decide_late(const Identity& identity, bool ending);
  absl::Status check_session(const Resume& resume) const;
  absl::StatusOr<uint32_t> find_seat(const Identity& identity, const Resume& resume);
  void reject_out_of_reach(const Identity& newcomer, absl::Duration now, Actions& actions);
  void welcome(uint32_t seat, const std::string& session, bool ending, Actions& actions);

  const Options& options_;
  const Origin origin_;
  Roster& roster_;
  const Planning& planning_;
  const Reattachment& reattachment_;
  std::string session_;
  uint32_t rejected_ = 0;
};

}  // namespace gleaner::coordinator
