// What a rank does on its I/O thread: what the coordinator says, push_pulls on their way, and what is observed of both.
#include <algorithm>
#include <utility>

#include "comm-lib/runtime/rank.h"
#include "comm-lib/runtime/workers_changed.h"
#include "common/base/thread.h"
#include "common/plan/model.h"
#include "common/plan/partitioner.h"

namespace gleaner::runtime {
namespace {

// How often statistics are passed on.
constexpr absl::Duration kObserveEvery = absl::Milliseconds(250);
// So long after the last push_pull the I/O thread keeps its pace: whoever begins the next one need not wake it.
constexpr absl::Duration kWakefulFor = absl::Milliseconds(50);
// A push_pull that is not done after this long is reported: the coordinator finds out which rank has not begun it.
constexpr absl::Duration kLongWait = absl::Milliseconds(500);

// 0: nobody knows how fast the links are.
double bound_seconds(const plan::Plan& plan, double bytes) {
  return plan.bandwidths_known() ? plan::bound_seconds(plan::fleet_of(plan), bytes) : 0;
}

}  // namespace

void Rank::on_welcome(const member::Welcome& welcome) {
  mailbox_.post([this, welcome] { this->welcome(welcome); });
}

void Rank::on_prepare(std::shared_ptr<const plan::Plan> plan) {
  mailbox_.post([this, plan = std::move(plan)]() mutable { prepare(std::move(plan)); });
}

void Rank::on_commit(uint32_t epoch) {
  mailbox_.post([this, epoch] { commit(epoch); });
}

void Rank::on_failed(const absl::Status& status) {
  mailbox_.post([this, status] { fail(status); });
}

void Rank::on_regroup(const absl::Status& status) {
  mailbox_.post([this, status] { fail(workers_changed(status.message())); });
}

void Rank::on_finished() {}

void Rank::on_ending() {
  mailbox_.post([this] { stages_->set_ending(); });
}

void Rank::on_coordinator_lost() {
  mailbox_.post([this] {
    recorder_.forget();  // nobody can ask for it any more
    stages_->on_coordinator_lost();
  });
}

void Rank::on_coordinator_found() {
  mailbox_.post([this] { stages_->on_coordinator_found(); });
}

void Rank::on_coordinator_gone(const absl::Status& why) {
  mailbox_.post([this, why] { stages_->on_coordinator_gone(why); });
}

void Rank::on_inquired(const std::string& tensor) {
  mailbox_.post([this, tensor] {
    const auto found = planned_.find(tensor);
    client_->begun(tensor, found == planned_.end() ? 0 : steps_[found->second]);
  });
}

void Rank::on_trace(member::TraceOrder order, uint64_t recording) {
  mailbox_.post([this, order, recording] {
    if (auto what = member::obey(order, recorder_)) client_->send_trace(recording, *std::move(what));
  });
}

void Rank::run() {
  name_this_thread("gln-io");
  std::vector<Outcome> outcomes;
  while (!stopping_) {
    absl::Duration patience;
    {
      absl::MutexLock lock(&turn_);
      stages_->poll();
      mailbox_.drain();
      stages_->advance();
      observe();
      patience = this->patience();
      outcomes.swap(outcomes_);
    }
    // A user who hears of it may ask for the next push_pull at once, and finds nobody at work.
    tell(outcomes);
    stages_->wait(patience);
  }
  // What was posted before the stop still counts: the last report, failures.
  absl::MutexLock lock(&turn_);
  mailbox_.drain();
}

// For how long it may wait.
absl::Duration Rank::patience() {
  asleep_ = false;
  if (stages_->has_work()) return absl::ZeroDuration();
  const absl::Duration now = env_.clock->since_start();
  if (meter_.busy() || !stages_->connected() || !stages_->idle()) last_busy_ = now;
  asleep_ = now - last_busy_ > kWakefulFor;
  return asleep_ ? kObserveEvery : absl::Milliseconds(5);
}

void Rank::welcome(const member::Welcome& welcome) {
  if (const absl::Status status = stages_->on_welcome(welcome); !status.ok()) return fail(status);
  absl::MutexLock lock(&mutex_);
  welcome_ = welcome;
}

void Rank::prepare(std::shared_ptr<const plan::Plan> plan) {
  const uint32_t epoch = plan->epoch;
  if (const absl::Status status = stages_->prepare(plan); !status.ok()) return client_->refuse(epoch, status);
  prepared_ = std::move(plan);
  client_->acknowledge(epoch);
}

void Rank::commit(uint32_t epoch) {
  if (const absl::Status status = stages_->commit(epoch); !status.ok()) return fail(status);
  plan_ = std::move(prepared_);
  meter_.follow(epoch, env_.clock->since_start());
  steps_.resize(plan_->tensors.size());
  {
    absl::MutexLock lock(&mutex_);
    welcome_.summers = plan_->summers();  // which may be fewer than were to come
  }
  for (auto id = static_cast<uint32_t>(planned_.size()); id < plan_->tensors.size(); ++id) {
    planned_.emplace(plan_->tensors[id].name, id);
  }
  for (const uint64_t handle : std::exchange(unplanned_, {})) {
    Flight& flight = flights_.at(handle);
    const auto found = planned_.find(flight.what.name);
    if (found == planned_.end()) {
      unplanned_.push_back(handle);
    } else {
      launch(handle, flight, found->second);
    }
  }
}

void Rank::begin(uint64_t handle, Flight flight) {
  const absl::Status status = usable();
  const auto found = planned_.find(flight.what.name);
  Flight& kept = flights_.emplace(handle, std::move(flight)).first->second;
  meter_.begin(kept.what.bytes(), env_.clock->since_start());
  if (!status.ok()) return finish(handle, status);
  if (found == planned_.end()) return unplanned_.push_back(handle);
  launch(handle, kept, found->second);
}

void Rank::launch(uint64_t handle, Flight& flight, uint32_t planned) {
  flight.planned = planned;
  flight.step = steps_[planned]++;
  record(trace::Kind::kRequested, flight, flight.asked);
  const size_t bytes = flight.what.bytes();
  Exchange exchange;
  exchange.handle = handle;
  exchange.tensor = planned;
  exchange.op = flight.op;
  exchange.input = {static_cast<std::byte*>(const_cast<void*>(flight.input)), bytes};
  exchange.output = {static_cast<std::byte*>(flight.output), bytes};
  stages_->start(exchange);
}

void Rank::record(trace::Kind kind, const Flight& flight, absl::Duration when) {
  if (!recorder_.is_on()) return;
  recorder_.record({absl::ToInt64Nanoseconds(when), flight.step, flight.planned, 0, 0, 0, kind});
}

void Rank::finish(uint64_t handle, const absl::Status& status) {
  const auto found = flights_.find(handle);
  if (found == flights_.end()) return;
  const Flight flight = std::move(found->second);
  flights_.erase(found);
  if (recorder_.is_on() && status.ok()) record(trace::Kind::kDone, flight, env_.clock->since_start());
  meter_.end(flight.tensor, flight.what.bytes(), status.ok(), env_.clock->since_start());
  declarations_.end(flight.tensor);
  outcomes_.push_back({handle, status});
}

void Rank::tell(std::vector<Outcome>& outcomes) {
  for (const Outcome& outcome : outcomes) handles_.finish(outcome.handle, outcome.status);
  outcomes.clear();
}

void Rank::on_done(uint64_t handle, const absl::Status& status) { finish(handle, status); }

void Rank::on_lost(uint32_t member, bool ends_job, const absl::Status& why) {
  client_->fault(member, why);
  if (ends_job) fail(is_elastic() ? workers_changed(why.message()) : why);
}

void Rank::fail(absl::Status status) {
  // DeadlineExceeded of a wait means "not yet"; what ends a session is never that.
  if (absl::IsDeadlineExceeded(status)) status = absl::UnavailableError(status.message());
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ != Phase::kOpening && phase_ != Phase::kOpen) return;
    phase_ = Phase::kFailed;
    failure_ = status;
  }
  env_.log->info("session failed", "reason", status.message());
  stages_->fail(status);
  unplanned_.clear();
  while (!flights_.empty()) finish(flights_.begin()->first, status);
  tell(outcomes_);
  handles_.close(status);
}

member::Report Rank::report(absl::Duration now, bool last) {
  member::Report report = meter_.report(now, last);
  if (stages_->network() != nullptr) {
    report.round_trip_seconds = absl::ToDoubleSeconds(stages_->network()->round_trip());
  }
  const auto oldest = std::min_element(flights_.begin(), flights_.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;  // handles count up
  });
  if (oldest == flights_.end() || now - oldest->second.asked < kLongWait) return report;
  report.waiting = {oldest->second.what.name, oldest->second.step, now - oldest->second.asked};
  return report;
}

void Rank::observe() {
  const absl::Duration now = env_.clock->since_start();
  const bool connected = stages_->connected() && plan_ != nullptr;
  const bool quiet = closing_ && !meter_.busy() && stages_->may_leave();
  const bool due = now - last_observation_ >= kObserveEvery;
  if (!due && quiet == seen_quiet_ && connected == seen_connected_) return;
  seen_quiet_ = quiet;
  seen_connected_ = connected;
  const member::Report report = due ? this->report(now) : member::Report();
  {
    absl::MutexLock lock(&mutex_);
    quiet_ = quiet;
    if (phase_ == Phase::kOpening && connected) phase_ = Phase::kOpen;
    if (connected) transports_ = stages_->describe_transports();
    if (!due) return;
    if (phase_ == Phase::kOpening && plan_ != nullptr) waiting_for_ = stages_->describe_waiting();
    stats_.steps = report.steps;
    stats_.bytes = report.bytes;
    stats_.communication_seconds = report.communication_seconds;
    stats_.epoch = plan_ == nullptr ? 0 : plan_->epoch;
    stats_.bound_seconds =
        plan_ == nullptr || report.steps == 0
            ? 0
            : bound_seconds(*plan_, static_cast<double>(report.bytes) / static_cast<double>(report.steps));
  }
  last_observation_ = now;
  client_->report(report);
  if (metrics_ == nullptr) return;
  metrics_->update(report, absl::Nanoseconds(waited_nanoseconds_.load()), plan_ == nullptr ? 0 : plan_->epoch,
                   stages_->network());
}

}  // namespace gleaner::runtime
