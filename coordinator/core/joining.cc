#include "coordinator/core/joining.h"

#include <algorithm>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "coordinator/core/reachability.h"

namespace gleaner::coordinator {

void Joining::on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume,
                        absl::Duration now, Actions& actions) {
  const bool has_state = resume.has_value() && (resume->committed > 0 || resume->prepared > 0);
  absl::Status status;
  if (parts_.outcome.has_ended()) {
    status = parts_.admission.send_outcome(stream, resume, *parts_.outcome.status(), actions);
  } else if (has_state) {
    status = readmit(stream, identity, *resume, now, actions);
  } else {
    status = check_reachable(parts_.roster, identity, parts_.options.launcher.has_hosts_file);
    if (status.ok()) status = admit(stream, identity, parts_.admission.session(), now, actions);
  }
  if (!status.ok()) parts_.admission.reject(stream, status, actions);
}

// Admits a member that has no state of the job.
absl::Status Joining::admit(StreamId stream, const Identity& identity, const std::string& session, absl::Duration now,
                            Actions& actions) {
  const bool ending = parts_.departures.is_ending();
  GLN_ASSIGN_OR_RETURN(const Admission::Decision decision, parts_.admission.decide(identity, ending));
  if (decision.kind == Admission::Decision::Kind::kIsLost) {
    lifecycle_.lose({decision.seat, decision.why}, now, actions);
    return parts_.outcome.why_failed();
  }
  if (decision.replaces) lifecycle_.lose({decision.seat, "its process was started again"}, now, actions);
  GLN_RETURN_IF_ERROR(parts_.admission.seat_new(decision, stream, identity, session, ending, now, actions));
  if (decision.kind == Admission::Decision::Kind::kJoinsLate) {
    parts_.planning.on_summer_joined(decision.seat, now);
    lifecycle_.propose_next(now, actions);
    return absl::OkStatus();
  }
  if (!parts_.roster.is_summer(decision.seat)) parts_.outcome.on_rank_joined();
  parts_.planning.catch_up(decision.seat, actions);
  lifecycle_.begin_if_all_joined(now, actions);
  return absl::OkStatus();
}

// Admits a member that returns with its state. The first one with a plan in force begins the re-attachment; a member
// without such a plan joins like a new one until then.
absl::Status Joining::readmit(StreamId stream, const Identity& identity, const Resume& resume, absl::Duration now,
                              Actions& actions) {
  GLN_RETURN_IF_ERROR(parts_.admission.check_coordinator(resume));
  if (!parts_.has_begun() && resume.committed == 0) {
    parts_.planning.on_known_epoch(resume.prepared);
    return admit(stream, identity, parts_.admission.session_for(resume), now, actions);
  }
  if (!parts_.has_begun()) {
    GLN_RETURN_IF_ERROR(parts_.roster.find_again(identity, resume.member, true).status());
    parts_.reattachment.begin(actions);
    const auto lost = parts_.admission.take_up(resume.session, parts_.liveness.last_tick(), actions);
    if (lost.has_value()) lifecycle_.lose({*lost, Admission::kStateIsLost}, now, actions);
    if (parts_.outcome.has_failed()) return parts_.outcome.why_failed();
  }
  GLN_ASSIGN_OR_RETURN(const uint32_t seat, parts_.admission.seat_again(stream, identity, resume, now));
  parts_.planning.on_known_epoch(std::max(resume.committed, resume.prepared));
  on_returned(seat, now, actions);
  return absl::OkStatus();
}

void Joining::on_returned(uint32_t seat, absl::Duration now, Actions& actions) {
  Reattachment& reattachment = parts_.reattachment;
  const plan::Plan& plan = parts_.planning.in_force();
  if (reattachment.is_left_out(seat, plan)) {
    if (!reattachment.is_under_way()) return lifecycle_.lose({seat, "it follows another plan"}, now, actions);
    reattachment.reject_summer(seat, *reattachment.plan(), now, actions);
    return lifecycle_.finish_reattachment_if_complete(now, actions);
  }
  parts_.admission.welcome_back(seat, parts_.departures.is_ending(), actions);
  lifecycle_.fail_if(reattachment.check_digest(seat, plan), actions);
  if (parts_.outcome.has_ended()) return;
  if (!reattachment.is_under_way()) return parts_.planning.catch_up(seat, actions);
  reattachment.ask_for_plan(actions);
  lifecycle_.finish_reattachment_if_complete(now, actions);
}

}  // namespace gleaner::coordinator
