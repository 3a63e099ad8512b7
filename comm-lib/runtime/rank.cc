#include "comm-lib/runtime/rank.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/base/thread.h"
#include "common/plan/model.h"

namespace gleaner::runtime {
namespace {

// How often statistics are passed on.
constexpr absl::Duration kObserveEvery = absl::Milliseconds(250);
// So long after the last push_pull the I/O thread keeps its pace: whoever begins the next one need not wake it.
constexpr absl::Duration kWakefulFor = absl::Milliseconds(50);
// What the caller's thread sends itself: that takes it some microseconds.
constexpr size_t kBeginHereBytes = 64 << 10;
// The coordinator, which knows who is missing, gives up first.
constexpr absl::Duration kGrace = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);

double bound_seconds(const plan::Plan& plan, double bytes) {
  plan::Fleet fleet;
  for (uint32_t i = 0; i < plan.members.size(); ++i) {
    auto& side = i < plan.workers ? fleet.worker_bits_per_second : fleet.summer_bits_per_second;
    side.push_back(plan.members[i].bits_per_second);
  }
  return plan::bound_seconds(fleet, bytes);
}

}  // namespace

Rank::Rank(const Config& config)
    : config_(config),
      system_({absl::StrCat("worker/", config.worker), config.log_level}),
      env_(system_.env()),
      recorder_(env_.clock),
      mailbox_([this] { stages_->wake(); }) {}

Rank::~Rank() { stop(); }

absl::StatusOr<std::unique_ptr<Rank>> Rank::open(const Config& config) {
  auto rank = std::unique_ptr<Rank>(new Rank(config));
  GLN_ASSIGN_OR_RETURN(rank->kernels_, kernels::Kernels::choose(config.kernel));
  GLN_RETURN_IF_ERROR(rank->join());
  GLN_RETURN_IF_ERROR(rank->wait_until_open());
  return rank;
}

absl::Status Rank::join() {
  GLN_ASSIGN_OR_RETURN(stages_, Stages::create(env_, config_, &*kernels_, &recorder_, this));
  // One for the worker: its local ranks share an environment where torchrun starts them.
  if (config_.metrics.has_value() && config_.local_rank == 0) {
    GLN_ASSIGN_OR_RETURN(metrics_, RankMetrics::serve(*config_.metrics, config_));
  }
  member::JoinOptions join;
  join.coordinator = config_.coordinator;
  join.job = config_.job;
  join.token = config_.token;
  join.token_file = config_.token_file;
  join.ca_file = config_.ca_file;
  join.role = member::Role::kWorker;
  join.index = config_.worker;
  join.local_rank = config_.local_rank;
  join.local_size = config_.local_size;
  join.address = stages_->address();
  join.bits_per_second = config_.bits_per_second;
  join.timeout = config_.open_timeout;
  join.plan_timeout = config_.plan_timeout;
  GLN_ASSIGN_OR_RETURN(client_, member::Client::start(env_, join, this));
  thread_ = std::thread([this] { run(); });
  return absl::OkStatus();
}

absl::Status Rank::wait_until_open() {
  absl::MutexLock lock(&mutex_);
  const auto decided = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return phase_ != Phase::kOpening; };
  if (!mutex_.AwaitWithTimeout(absl::Condition(&decided), config_.open_timeout + kGrace)) {
    return absl::DeadlineExceededError(absl::StrCat("the job did not start within ",
                                                    absl::FormatDuration(config_.open_timeout + kGrace),
                                                    ": still waiting for ", waiting_for_));
  }
  return failure_;
}

absl::Status Rank::usable() const {
  absl::MutexLock lock(&mutex_);
  switch (phase_) {
    case Phase::kOpening:
      return absl::FailedPreconditionError("the session is not open yet");
    case Phase::kOpen:
      return absl::OkStatus();
    case Phase::kFailed:
      return failure_;
    case Phase::kClosed:
      return absl::FailedPreconditionError("the session is closed");
  }
  return absl::InternalError("unknown phase");
}

gln_topology Rank::topology() const {
  absl::MutexLock lock(&mutex_);
  gln_topology topology = GLN_TOPOLOGY_INIT;
  topology.worker = config_.worker;
  topology.workers = welcome_.workers;
  topology.local_rank = config_.local_rank;
  topology.local_ranks = welcome_.local_ranks;
  topology.rank = config_.worker * welcome_.local_ranks + config_.local_rank;
  topology.ranks = welcome_.workers * welcome_.local_ranks;
  topology.summers = welcome_.summers;
  return topology;
}

gln_stats Rank::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

absl::StatusOr<uint64_t> Rank::push_pull(uint32_t tensor, const void* input, void* output, ReduceOp op) {
  GLN_RETURN_IF_ERROR(usable());
  if (!is_valid(op)) {
    return absl::InvalidArgumentError(absl::StrCat("op ", static_cast<int>(op), " is none of gln_op"));
  }
  GLN_ASSIGN_OR_RETURN(plan::Tensor what, declarations_.begin(tensor));
  absl::Status wrong;
  if (what.elements > 0 && (input == nullptr || output == nullptr)) {
    wrong = absl::InvalidArgumentError(absl::StrCat("input or output of tensor '", what.name, "' is NULL"));
  } else if (op == ReduceOp::kAverage && what.type == DataType::kInt32) {
    wrong = absl::InvalidArgumentError(
        absl::StrCat("tensor '", what.name, "' is int32, whose average has no exact value; sum it and divide"));
  }
  if (!wrong.ok()) {
    declarations_.end(tensor);
    return wrong;
  }
  if (std::vector<plan::Tensor> untold = declarations_.take_untold(); !untold.empty()) client_->declare(untold);
  const uint64_t handle = handles_.open();
  Flight asked{tensor, std::move(what), op, input, output, env_.clock->since_start()};
  if (begin_here(handle, asked)) return handle;
  mailbox_.post([this, handle, flight = std::move(asked)]() mutable { begin(handle, std::move(flight)); });
  return handle;
}

// Only the first of several: the I/O thread sends the others together.
bool Rank::begin_here(uint64_t handle, Flight& flight) {
  if (flight.what.bytes() > kBeginHereBytes || config_.local_size > 1 || !turn_.TryLock()) return false;
  const bool first = flights_.empty() && mailbox_.empty();
  bool wanted = false;
  std::vector<Outcome> outcomes;
  if (first) {
    begin(handle, std::move(flight));
    stages_->advance();
    wanted = asleep_ || stages_->has_work();
    outcomes.swap(outcomes_);
  }
  turn_.Unlock();
  tell(outcomes);
  if (wanted) stages_->wake();
  return first;
}

// Bits survive a sum of int32 in which all ranks but one give zeros.
absl::Status Rank::broadcast(const std::string& name, MutableBytes data, uint32_t root) {
  const gln_topology where = topology();
  if (root >= where.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("root ", root, " is not a rank; there are ", where.ranks));
  }
  std::vector<int32_t> words((data.size() + 3) / 4, 0);
  if (where.rank == root && !data.empty()) std::memcpy(words.data(), data.data(), data.size());
  GLN_ASSIGN_OR_RETURN(const uint32_t tensor,
                       declare({absl::StrCat("broadcast/", name), words.size(), DataType::kInt32, 0}));
  GLN_ASSIGN_OR_RETURN(const uint64_t handle, push_pull(tensor, words.data(), words.data(), ReduceOp::kSum));
  absl::Status outcome;
  GLN_RETURN_IF_ERROR(handles_.wait(handle, absl::InfiniteDuration(), &outcome));
  GLN_RETURN_IF_ERROR(outcome);
  if (!data.empty()) std::memcpy(data.data(), words.data(), data.size());
  return absl::OkStatus();
}

void Rank::step() {
  mailbox_.post([this] { meter_.step(); });
}

absl::Status Rank::close(bool failed) {
  absl::Status status = usable();
  if (status.ok() && failed) status = absl::AbortedError("the training process ended in error");
  if (status.ok()) {
    absl::Duration deadline;
    {
      absl::MutexLock lock(&mutex_);
      deadline = welcome_.deadline;
    }
    if (!handles_.wait_all(deadline)) {
      status = absl::DeadlineExceededError("push_pulls are still in flight after the deadline; the session is closed");
    } else {
      absl::MutexLock lock(&mutex_);
      const auto quiet = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return quiet_ || phase_ == Phase::kFailed; };
      mutex_.AwaitWithTimeout(absl::Condition(&quiet), deadline);
      status = failure_;
    }
  }
  report_now();
  client_->leave(status, kLeaveTimeout);
  stop();
  return failed && absl::IsAborted(status) ? absl::OkStatus() : status;
}

void Rank::report_now() {
  auto reported = std::make_shared<absl::Notification>();
  mailbox_.post([this, reported] {
    client_->report(meter_.report(env_.clock->since_start()));
    reported->Notify();
  });
  reported->WaitForNotificationWithTimeout(kLeaveTimeout);
}

void Rank::stop() {
  if (client_ != nullptr) client_->stop();
  if (thread_.joinable()) {
    stopping_ = true;
    stages_->wake();
    thread_.join();
  }
  mailbox_.close();
  {
    absl::MutexLock lock(&mutex_);
    if (phase_ == Phase::kOpen || phase_ == Phase::kOpening) phase_ = Phase::kClosed;
  }
  handles_.close(absl::FailedPreconditionError("the session is closed"));
}

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

void Rank::on_finished() {}

void Rank::on_coordinator_lost() {
  mailbox_.post([this] { recorder_.forget(); });  // nobody can ask for it any more
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
  meter_.begin(env_.clock->since_start());
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

void Rank::on_lost(uint32_t member, const absl::Status& why) {
  client_->fault(member, why);
  fail(why);
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

void Rank::observe() {
  const absl::Duration now = env_.clock->since_start();
  const bool connected = stages_->connected() && plan_ != nullptr;
  const bool quiet = !meter_.busy() && stages_->idle();
  const bool due = now - last_observation_ >= kObserveEvery;
  if (!due && quiet == seen_quiet_ && connected == seen_connected_) return;
  seen_quiet_ = quiet;
  seen_connected_ = connected;
  {
    absl::MutexLock lock(&mutex_);
    quiet_ = quiet;
    if (phase_ == Phase::kOpening && connected) phase_ = Phase::kOpen;
    if (!due) return;
    if (phase_ == Phase::kOpening && plan_ != nullptr) waiting_for_ = stages_->describe_waiting();
    const member::Report report = meter_.report(now);
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
  const member::Report report = meter_.report(now);
  client_->report(report);
  if (metrics_ == nullptr) return;
  metrics_->update(report, plan_ == nullptr ? 0 : plan_->epoch, stages_->network());
}

}  // namespace gleaner::runtime
