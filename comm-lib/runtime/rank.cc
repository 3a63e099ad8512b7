#include "comm-lib/runtime/rank.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "comm-lib/runtime/workers_changed.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {
namespace {

// What the caller's thread sends itself: that takes it some microseconds.
constexpr size_t kBeginHereBytes = 64 << 10;
// The coordinator, which knows who is missing, gives up first.
constexpr absl::Duration kGrace = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);
constexpr absl::Duration kReturnTimeout = absl::Seconds(2);  // for memory to be given back

// Of workers that accumulate each has its own pace, and may need the others until its last push_pull.
plan::Tensor meeting() { return {"gleaner/everybody is done", 1, DataType::kInt32}; }

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
  if (const absl::Status status = rank->wait_until_open(); !status.ok()) {
    if (is_workers_changed(status)) rank->client_->come_again(status, kLeaveTimeout);
    return status;
  }
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
  join.endpoints = stages_->endpoints();
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
  topology.worker = welcome_.member;  // config_.worker, but where n changes
  topology.workers = welcome_.workers;
  topology.local_rank = config_.local_rank;
  topology.local_ranks = welcome_.local_ranks;
  topology.rank = welcome_.member * welcome_.local_ranks + config_.local_rank;
  topology.ranks = welcome_.workers * welcome_.local_ranks;
  topology.summers = welcome_.summers;
  return topology;
}

gln_stats Rank::stats() const {
  absl::MutexLock lock(&mutex_);
  return stats_;
}

std::string Rank::transports() const {
  absl::MutexLock lock(&mutex_);
  return transports_;
}

absl::StatusOr<uint32_t> Rank::declare(plan::Tensor tensor) {
  const bool accumulates = tensor.accumulates;
  GLN_ASSIGN_OR_RETURN(const uint32_t id, declarations_.declare(std::move(tensor)));
  // All ranks declare that at about the same time, and may end at very different ones.
  if (accumulates && !accumulates_.exchange(true)) GLN_RETURN_IF_ERROR(declarations_.declare(meeting()).status());
  return id;
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
  } else if (what.accumulates != (op == ReduceOp::kAccumulate)) {
    wrong = absl::InvalidArgumentError(
        absl::StrCat("tensor '", what.name,
                     what.accumulates ? "' was declared to be accumulated, and to nothing else"
                                      : "' was not declared to be accumulated: use gln_declare_accumulated()"));
  } else if (op == ReduceOp::kAverage && what.type == DataType::kInt32) {
    wrong = absl::InvalidArgumentError(
        absl::StrCat("tensor '", what.name, "' is int32, whose average has no exact value; sum it and divide"));
  }
  if (!wrong.ok()) {
    declarations_.end(tensor);
    return wrong;
  }
  const Declarations::Untold untold = declarations_.take_untold(tensor, op);
  if (!untold.tensors.empty() || !untold.operations.empty()) client_->declare(untold.tensors, untold.operations);
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

// Bits survive a sum of int32 in which all ranks but one give zeros. Behind them each rank says which root it asks for,
// so that ranks that differ all hear of it, and none takes the sum of two roots for a value.
absl::Status Rank::broadcast(const std::string& name, MutableBytes data, uint32_t root) {
  const gln_topology where = topology();
  if (root >= where.ranks) {
    return absl::InvalidArgumentError(absl::StrCat("root ", root, " is not a rank; there are ", where.ranks));
  }
  const size_t value_words = (data.size() + 3) / 4;
  std::vector<int32_t> words(value_words + where.ranks, 0);
  words[value_words + where.rank] = static_cast<int32_t>(root);
  if (where.rank == root && !data.empty()) std::memcpy(words.data(), data.data(), data.size());
  GLN_ASSIGN_OR_RETURN(const uint32_t tensor,
                       declare({absl::StrCat("broadcast/", name), words.size(), DataType::kInt32, 0}));
  GLN_ASSIGN_OR_RETURN(const uint64_t handle, push_pull(tensor, words.data(), words.data(), ReduceOp::kSum));
  absl::Status outcome;
  GLN_RETURN_IF_ERROR(handles_.wait(handle, absl::InfiniteDuration(), &outcome));
  GLN_RETURN_IF_ERROR(outcome);
  for (uint32_t rank = 0; rank < where.ranks; ++rank) {
    const auto asked = static_cast<uint32_t>(words[value_words + rank]);
    if (asked == root) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("broadcast of '", name, "': rank ", where.rank, " asks for the value of rank ", root, ", rank ",
                     rank, " for that of rank ", asked, "; every rank must name the same root"));
  }
  if (!data.empty()) std::memcpy(data.data(), words.data(), data.size());
  return absl::OkStatus();
}

absl::Status Rank::register_memory(MutableBytes memory) {
  const absl::MutexLock lock(&turn_);
  return stages_->register_memory(memory);
}

// What was sent is let go some time after its sum is there.
absl::Status Rank::unregister_memory(const void* begin) {
  const absl::Duration until = env_.clock->since_start() + kReturnTimeout;
  while (true) {
    {
      const absl::MutexLock lock(&turn_);
      absl::Status status = stages_->unregister_memory(begin);
      if (!absl::IsUnavailable(status)) return status;
      if (env_.clock->since_start() > until) return absl::FailedPreconditionError(status.message());
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

absl::Status Rank::wait(uint64_t handle, absl::Duration timeout, absl::Status* outcome) {
  const auto done = handles_.done(handle);
  const absl::Duration start = env_.clock->since_start();
  absl::Status waited = handles_.wait(handle, timeout, outcome);
  if (done.ok() && !*done) waited_nanoseconds_ += absl::ToInt64Nanoseconds(env_.clock->since_start() - start);
  return waited;
}

void Rank::step() {
  mailbox_.post([this] { meter_.step(); });
}

// Waits until all ranks are here: a sum needs everybody.
absl::Status Rank::meet() {
  GLN_ASSIGN_OR_RETURN(const uint32_t tensor, declare(meeting()));
  int32_t here = 1;
  GLN_ASSIGN_OR_RETURN(const uint64_t handle, push_pull(tensor, &here, &here, ReduceOp::kSum));
  absl::Status outcome;
  GLN_RETURN_IF_ERROR(handles_.wait(handle, absl::InfiniteDuration(), &outcome));
  return outcome;
}

absl::Status Rank::close(Leave how) {
  absl::Status status = usable();
  const bool gives_up = status.ok() && how == Leave::kFailed;
  if (gives_up) status = absl::AbortedError("the training process ended in error");
  if (status.ok() && accumulates_ && how == Leave::kWell) status = meet();
  if (status.ok()) {
    absl::Duration deadline;
    {
      absl::MutexLock lock(&mutex_);
      deadline = welcome_.deadline;
    }
    status =
        handles_.wait_all(deadline)
            ? await_quiet()
            : absl::DeadlineExceededError("push_pulls are still in flight after the deadline; the session is closed");
  }
  report_now();
  const bool again = how == Leave::kAgain;
  while (!(again ? client_->come_again(status, kLeaveTimeout) : client_->leave(status, kLeaveTimeout))) {
    status = await_quiet();
  }
  stop();
  const bool is_news = !gives_up && !(how == Leave::kAgain && is_workers_changed(status));
  return is_news ? status : absl::OkStatus();
}

bool Rank::is_elastic() const {
  absl::MutexLock lock(&mutex_);
  return welcome_.elastic;
}

// Until nobody needs anything of us under the latest plan that we were told, or the deadline.
absl::Status Rank::await_quiet() {
  auto forgotten = std::make_shared<absl::Notification>();
  mailbox_.post([this, forgotten] {
    closing_ = true;
    seen_quiet_ = false;
    {
      absl::MutexLock lock(&mutex_);
      quiet_ = false;
    }
    forgotten->Notify();
  });
  forgotten->WaitForNotificationWithTimeout(kLeaveTimeout);
  absl::MutexLock lock(&mutex_);
  const auto quiet = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return quiet_ || phase_ == Phase::kFailed; };
  mutex_.AwaitWithTimeout(absl::Condition(&quiet), welcome_.deadline);
  return failure_;
}

void Rank::report_now() {
  auto reported = std::make_shared<absl::Notification>();
  mailbox_.post([this, reported] {
    client_->report(report(env_.clock->since_start(), true));
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

}  // namespace gleaner::runtime
