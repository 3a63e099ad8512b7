// OwnerSupervision keeps a worker connected to the members of the plan in force, and reports those that are lost.
// comm-lib/supervision decides when to connect, when a member is lost, and when to report it; OwnerSupervision carries
// the decisions out on the connections, the exchanges and the listener. Belongs to one thread.
//
// A lost CPU summer is reported until a plan without that summer is in force. The loss of another worker is reported
// until the coordinator ends the job; without a coordinator, or without its answer, it ends the session
// (supervision/reports.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "comm-lib/exchange/exchanges.h"
#include "comm-lib/network/member_connections.h"
#include "comm-lib/pipeline/event.h"
#include "comm-lib/supervision/hold_limit.h"
#include "comm-lib/supervision/reports.h"
#include "comm-lib/supervision/supervisor.h"
#include "common/base/env.h"
#include "common/plan/plan.h"

namespace gleaner::network {

// Receives what a worker's network learns about other members. The listener tells the coordinator.
class NetworkListener {
 public:
  virtual ~NetworkListener() = default;
  // A member is lost. The call is repeated while the loss lasts. `ends_job`: the member is a worker, and no coordinator
  // decides on its loss, so the listener also fails the pipeline.
  virtual void on_lost(uint32_t member, bool ends_job, const absl::Status& why) = 0;
  // An owner follows the plan of `epoch`, which is later than the plan in force here. `by_rank`: the owner is a
  // worker's colocated summer. Called at most once for each epoch and value of `by_rank`.
  virtual void on_owner_follows(uint32_t epoch, bool by_rank) = 0;
  // A call of a group (NetworkStage::start_call()) has ended.
  virtual void on_called(uint64_t id, const absl::Status& outcome) = 0;
};

class OwnerSupervision {
 public:
  struct Options {
    absl::Duration deadline;      // the job's
    absl::Duration plan_timeout;  // the time to wait for a lost coordinator that may return
  };

  // All pointers must outlive this object.
  OwnerSupervision(const Env& env, const Options& options, MemberConnections* connections,
                   exchange::Exchanges* exchanges, NetworkListener* listener);

  // Brings a plan into force, for `connections` as well, and drops connections to members that have left their place.
  void follow(const std::shared_ptr<const plan::Plan>& plan);

  // Record that a connection is up, or has ended.
  void on_connected(uint32_t member) { supervisor_.on_connected(member); }
  void on_closed(uint32_t member, const absl::Status& why) { supervisor_.on_closed(member, why, now(), actions_); }
  // Records that a result has arrived over any path.
  void on_result() { supervisor_.on_result(); }
  // Returns whether the path to the member needs progress, and records such progress: a new result from the member.
  bool is_doubted(uint32_t member) const { return supervisor_.is_doubted(member); }
  void on_progress(uint32_t member) { supervisor_.on_progress(member, actions_); }

  // Takes up that the coordinator is lost, found or gone, or that the job is ending; ignores other events.
  void on_event(const pipeline::Event& event);

  // Carries out what is due. To be called every few milliseconds. An error ends the session: a member is out of reach,
  // and no coordinator can make a plan without it; or a change of strategy has lasted too long without a coordinator.
  absl::Status tick();
  // Ends the supervision: later calls of tick() do nothing. May be called inside NetworkListener::on_lost().
  void stop() { stopped_ = true; }
  bool is_stopped() const { return stopped_; }

  bool all_up() const { return supervisor_.all_up(); }
  // Returns a text that names the members that are not connected; empty: all are.
  std::string describe_missing() const;

 private:
  absl::Duration now() const { return env_.clock->since_start(); }
  void take(const pipeline::CoordinatorLost& lost);
  void take(const pipeline::CoordinatorFound& found);
  void take(const pipeline::CoordinatorGone& gone);
  void take(const pipeline::Ending&) { supervisor_.set_ending(); }
  void take(const auto& /*other*/) {}
  void note_arrivals();
  void carry_out();
  absl::Status report_losses(const std::vector<uint32_t>& due);

  const Env env_;
  MemberConnections* const connections_;
  exchange::Exchanges* const exchanges_;
  NetworkListener* const listener_;
  std::shared_ptr<const plan::Plan> plan_;
  supervision::Supervisor supervisor_;
  supervision::Reports reports_;
  supervision::HoldLimit hold_limit_;
  supervision::Actions actions_;
  supervision::ReportActions report_actions_;
  bool stopped_ = false;
};

}  // namespace gleaner::network
