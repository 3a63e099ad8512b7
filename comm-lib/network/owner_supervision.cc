#include "comm-lib/network/owner_supervision.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gleaner::network {
namespace {

// The time beyond the deadline for which the coordinator may wait until it knows which worker is the cause: for the
// exit of a process (exit_timeout), and for messages and ticks.
constexpr absl::Duration kVerdict = absl::Seconds(5);

}  // namespace

OwnerSupervision::OwnerSupervision(const Env& env, const Options& options, MemberConnections* connections,
                                   exchange::Exchanges* exchanges, NetworkListener* listener)
    : env_(env),
      connections_(connections),
      exchanges_(exchanges),
      listener_(listener),
      supervisor_({.deadline = options.deadline, .plan_timeout = options.plan_timeout}),
      reports_({.deadline = options.deadline,
                .plan_timeout = options.plan_timeout,
                .verdict_timeout = options.deadline + kVerdict}),
      hold_limit_(options.deadline, options.plan_timeout) {}

void OwnerSupervision::follow(const std::shared_ptr<const plan::Plan>& plan) {
  plan_ = plan;
  supervisor_.follow(plan, now(), actions_);
  for (const supervision::Drop& dropped : std::exchange(actions_.drops, {})) {
    connections_->drop(dropped.member);
    if (dropped.was_up) exchanges_->on_disconnected(dropped.member);
  }
  reports_.on_plan(*plan);
  connections_->follow(plan);
}

void OwnerSupervision::on_event(const pipeline::Event& event) {
  std::visit([this](const auto& each) { take(each); }, event);
}

void OwnerSupervision::take(const pipeline::CoordinatorLost& /*lost*/) {
  reports_.on_coordinator_lost(now());
  supervisor_.on_coordinator_lost();
  hold_limit_.on_coordinator_lost();
}

void OwnerSupervision::take(const pipeline::CoordinatorFound& /*found*/) {
  reports_.on_coordinator_found();
  supervisor_.on_coordinator_found();
  hold_limit_.on_coordinator_found();
}

void OwnerSupervision::take(const pipeline::CoordinatorGone& gone) {
  reports_.on_coordinator_gone(gone.why);
  supervisor_.on_coordinator_gone();
  hold_limit_.on_coordinator_gone();
}

absl::Status OwnerSupervision::tick() {
  if (stopped_) return absl::OkStatus();
  note_arrivals();
  const std::vector<uint32_t> due = supervisor_.all_settled() ? std::vector<uint32_t>() : exchanges_->waiting_for();
  supervisor_.tick(now(), due, actions_);
  carry_out();
  if (absl::Status held = hold_limit_.tick(exchanges_->held_tensor(), now()); !held.ok()) return held;
  return report_losses(due);
}

// A path whose peer has confirmed all frames has made progress, even if the sums wait for other workers.
void OwnerSupervision::note_arrivals() {
  for (uint32_t member = 0; member < supervisor_.members(); ++member) {
    if (supervisor_.is_doubted(member) && connections_->all_arrived(member)) on_progress(member);
  }
}

void OwnerSupervision::carry_out() {
  for (const uint32_t member : actions_.dials) {
    if (const absl::Status status = connections_->dial(member); !status.ok()) {
      supervisor_.on_dial_failed(member, status, now(), actions_);
    }
  }
  for (const uint32_t member : actions_.healed) reports_.withdraw(member);
  for (const supervision::Warning& warning : actions_.warnings) {
    env_.log->warning(warning.what, "summer", plan_->member_name(warning.member), "address",
                      plan_->members[warning.member].address, "last", warning.last.message());
  }
  for (const supervision::Loss& loss : std::exchange(actions_.losses, {})) {
    if (loss.ends_job) {
      reports_.add_worker(loss.member, loss.why, now());
    } else {
      reports_.add(loss.member, loss.since, loss.why, now());
    }
  }
  actions_.clear();
}

absl::Status OwnerSupervision::report_losses(const std::vector<uint32_t>& due) {
  reports_.tick(now(), due, report_actions_);
  for (const std::string& warning : report_actions_.warnings) env_.log->warning(warning);
  for (const supervision::Report& report : report_actions_.reports)
    listener_->on_lost(report.member, false, report.why);
  report_actions_.warnings.clear();
  report_actions_.reports.clear();
  absl::Status failure = std::exchange(report_actions_.failure, absl::OkStatus());
  const std::optional<uint32_t> lost_worker = std::exchange(report_actions_.lost_worker, std::nullopt);
  if (!lost_worker.has_value()) return failure;
  listener_->on_lost(*lost_worker, true, failure);
  return absl::OkStatus();
}

std::string OwnerSupervision::describe_missing() const {
  std::vector<std::string> names;
  for (uint32_t member = 0; member < supervisor_.members(); ++member) {
    if (supervisor_.is_up(member) || !supervisor_.is_member(member)) continue;
    names.push_back(absl::StrCat(plan_->member_name(member), " at ", plan_->members[member].address, " (",
                                 supervisor_.last(member).message(), ")"));
  }
  return absl::StrJoin(names, ", ");
}

}  // namespace gleaner::network
