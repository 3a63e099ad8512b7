// The coordinator's protocol core. A Core keeps the members of one job, the tensors that all ranks have declared, and
// the plan in force.
//
// Core is pure: it does no I/O and reads no clock. The driver (Rounds and Job, a test or the simulator) calls it with
// each event and the time, and then carries out the Actions in order. A Core belongs to one thread.
//
// Core receives the events, has the parts (parts.h) that an event concerns decide on it, and passes their findings to
// Lifecycle (lifecycle.h), which begins the job, changes plans, and ends the job. Requests to join go through Joining
// (joining.h), and the passing of time through TimeLimits (time_limits.h).
//
// Failure: the job fails at the first error that Core cannot repair. Such errors are a member that is missing at
// start_timeout, a lost worker, declarations that differ, and a needed or recovery plan that a rank refuses. Core sends
// the reason to every member, and outcome() returns it. The loss of a CPU summer does not fail the job.
//
// A member *leaves cleanly* when it sends Leave with an OK status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/plan/plan.h"
#include "coordinator/core/joining.h"
#include "coordinator/core/lifecycle.h"
#include "coordinator/core/parts.h"
#include "coordinator/core/time_limits.h"
#include "coordinator/measure/efficiency_meter.h"
#include "coordinator/roster/messages.h"
#include "coordinator/roster/options.h"
#include "coordinator/status/summary.h"

namespace gleaner::coordinator {

class Core {
 public:
  // `options` must be valid. The start timeout counts from `now`.
  Core(const Options& options, absl::Duration now, Origin origin = {}) : parts_(options, now, std::move(origin)) {}

  // An authenticated member wants to join. `resume`: the state that a returning member shows.
  void on_joined(StreamId stream, const Identity& identity, const std::optional<Resume>& resume, absl::Duration now,
                 Actions& actions);
  // The answer to Recall: the plan that the member follows.
  void on_recalled(StreamId stream, plan::Plan plan, absl::Duration now, Actions& actions);
  // The operator or a launcher reports that this member (a worker with all its local ranks) has ended. OK: it ended
  // cleanly and does not come back; otherwise it is lost. A worker that ended before the job had begun is lost in both
  // cases. The job begins, or goes on, without a summer that has ended.
  void on_ended(Role role, uint32_t index, const absl::Status& how, absl::Duration now, Actions& actions);
  // A launcher reports how the process of this rank ended (outcome.h). The exit counts as a loss, unless the rank had
  // left cleanly and exited with status 0. If the rank is known to be lost, the exit explains why. After a loss, exits
  // of other workers' ranks count as its consequences.
  void on_exited(uint32_t worker, uint32_t local_rank, const RankExit& exit, Actions& actions);
  // Sets how many summers the job waits for before it begins. Summers that have joined stay, those with the smallest
  // indices first; surplus ones are rejected. The remaining seats get the smallest free indices. InvalidArgument: too
  // many members. FailedPrecondition once a plan is proposed: from then on summers may join at any time, and
  // release_summer() removes one.
  absl::Status set_summers(uint32_t summers, absl::Duration now, Actions& actions);
  // Releases this summer: the next plan leaves it out, and then the summer gets Goodbye. NotFound: no such summer takes
  // part, or the job has not begun.
  absl::Status release_summer(uint32_t index, absl::Duration now, Actions& actions);
  // Sets a member's bandwidth, each way. It overrides the options and the member's own figure. NotFound: no such
  // member; InvalidArgument: a bandwidth out of range.
  absl::Status set_bandwidth(Role role, uint32_t index, double bits_per_second, absl::Duration now, Actions& actions);
  // Sets the switch of the job's network to which the link of this summer leads, by its index among the switches,
  // before or after the summer joins. The next plan follows it. FailedPrecondition: the job has no network with
  // JobNetwork::summers_at. InvalidArgument: the network has no such switch.
  absl::Status set_summer_switch(uint32_t index, uint32_t at, absl::Duration now, Actions& actions);
  // Messages from members. Core ignores a message from a stream that has no seat, and every message once the job has
  // ended.
  void on_heartbeat(StreamId stream, absl::Duration now);
  // `tensors` are newly declared. `operations` are those of the first push_pulls of tensors declared in this message or
  // earlier.
  void on_declared(StreamId stream, const std::vector<plan::Tensor>& tensors,
                   const std::vector<plan::Operation>& operations, absl::Duration now, Actions& actions);
  void on_acknowledged(StreamId stream, uint32_t epoch, absl::Duration now, Actions& actions);
  // Ignored if the plan of `epoch` was withdrawn meanwhile.
  void on_refused(StreamId stream, uint32_t epoch, const absl::Status& why, absl::Duration now, Actions& actions);
  void on_report(StreamId stream, const Report& report, absl::Duration now, Actions& actions);
  // `waiting`: the oldest push_pull that this rank waits for; none while no push_pull takes long.
  void on_waiting(StreamId stream, std::optional<OldestPushPull> waiting, absl::Duration now);
  // The answer to Inquire.
  void on_begun(StreamId stream, const std::string& tensor, uint64_t push_pulls, absl::Duration now);
  // The answer to CountPushPulls: by tensor of the plan of `epoch`.
  void on_push_pulls(StreamId stream, uint32_t epoch, std::vector<uint64_t> counts, absl::Duration now,
                     Actions& actions);
  // The answer to Actions::model.
  void on_modelled(const ModelRequest& request, absl::StatusOr<strategy::Models> models, absl::Duration now,
                   Actions& actions);
  // The sender can't go on with `member`, an index in the plan of `epoch`, which the sender follows. Core removes a CPU
  // summer, and fails the job otherwise. An index beyond the plan says that the sender itself can't go on. Core ignores
  // the report if another summer has joined at that index since. Epoch 0: the sender does not know the epoch.
  void on_fault(StreamId stream, uint32_t member, uint32_t epoch, const absl::Status& why, absl::Duration now,
                Actions& actions);
  // The member asks to leave. `epoch`: of the plan that the member follows. Core ignores a clean Leave of a rank that
  // follows an earlier plan than the committed one: the rank may be needed under the committed plan, and sends Leave
  // again when it follows that plan. Returns whether a rank has left.
  bool on_left(StreamId stream, const absl::Status& status, uint32_t epoch, absl::Duration now, Actions& actions);
  // The stream broke (Unavailable), or the member violated the protocol (any other code).
  void on_disconnected(StreamId stream, const absl::Status& why, Actions& actions);
  // Checks deadlines and sends heartbeats. To be called several times a second.
  void on_tick(absl::Duration now, Actions& actions);
  // Ends the job with an error.
  void stop(const absl::Status& why, Actions& actions);

  Phase phase() const { return parts_.phase(); }
  Summary summary() const;
  const Roster& roster() const { return parts_.roster; }
  const Outcome& outcome() const { return parts_.outcome; }
  const Planning& planning() const { return parts_.planning; }
  const plan::Plan& plan() const { return planning().in_force(); }  // epoch 0: no plan has been committed
  const StepMonitor& steps() const { return parts_.steps; }
  const Admission& admission() const { return parts_.admission; }

 private:
  void on_summer_ended(uint32_t seat, absl::string_view why, absl::Duration now, Actions& actions);
  void on_summer_left(uint32_t seat, const absl::Status& status, absl::Duration now, Actions& actions);
  std::optional<uint32_t> seat_of_sender(StreamId stream, absl::Duration now);
  std::optional<uint32_t> rank_of_sender(StreamId stream, absl::Duration now);

  Parts parts_;
  Lifecycle lifecycle_{&parts_};
  Joining joining_{&parts_, &lifecycle_};
  TimeLimits time_limits_{&parts_, &lifecycle_};
};

}  // namespace gleaner::coordinator
