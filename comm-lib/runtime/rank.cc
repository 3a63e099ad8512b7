#include "comm-lib/runtime/rank.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "comm-lib/runtime/workers_changed.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {
namespace {

// The largest request that the caller's thread begins itself. That takes some microseconds.
constexpr size_t kBeginHereBytes = 64 << 10;
// With this delay the coordinator fails the job first, and its error names the missing members.
constexpr absl::Duration kGrace = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);
constexpr absl::Duration kReturnTimeout = absl::Seconds(2);  // for requests to release their memory

// Returns the tensor of a sum that all ranks take part in before any of them leaves. Workers that accumulate go at
// their own pace, and each may need the others until its last request.
plan::Tensor closing_tensor() { return {"gleaner/everybody is done", 1, DataType::kInt32}; }

absl::Status check(const plan::Tensor& tensor, const void* input, const void* output, ReduceOp op) {
  if (tensor.elements > 0 && (input == nullptr || output == nullptr)) {
    return absl::InvalidArgumentError(absl::StrCat("input or output of tensor '", tensor.name, "' is NULL"));
  }
  if (tensor.accumulates != (op == ReduceOp::kAccumulate)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensor.name,
                     tensor.accumulates ? "' was declared to be accumulated: its op must be GLN_ACCUMULATE"
                                        : "' was not declared to be accumulated: use gln_declare_accumulated()"));
  }
  if (op == ReduceOp::kAverage && tensor.type == DataType::kInt32) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor '", tensor.name, "' is int32, whose average has no exact value; sum it and divide"));
  }
  return absl::OkStatus();
}

}  // namespace

Rank::Rank(const Config& config)
    : config_(config),
      system_({absl::StrCat("worker/", config.worker), config.log_level}),
      env_(system_.env()),
      state_(config.local_rank),
      recorder_(env_.clock),
      loop_(env_.clock, Statistics::kEvery, this) {}

Rank::~Rank() { stop(); }

absl::StatusOr<std::unique_ptr<Rank>> Rank::open(const Config& config) {
  Config completed = config;
  complete_address(completed);
  auto rank = std::unique_ptr<Rank>(new Rank(completed));
  GLN_ASSIGN_OR_RETURN(rank->kernels_, kernels::Kernels::choose(config.kernel));
  GLN_RETURN_IF_ERROR(rank->join());
  if (const absl::Status status = rank->state_.wait_until_open(config.open_timeout + kGrace); !status.ok()) {
    if (is_workers_changed(status)) rank->client_->come_again(status, kLeaveTimeout);
    return status;
  }
  return rank;
}

absl::Status Rank::join() {
  GLN_ASSIGN_OR_RETURN(stages_, Stages::create(env_, config_, &*kernels_, &recorder_, this));
  // Local rank 0 serves metrics: under torchrun all local ranks have the same GLEANER_METRICS.
  if (config_.metrics.has_value() && config_.local_rank == 0) {
    GLN_RETURN_IF_ERROR(statistics_.serve_metrics(*config_.metrics, config_));
  }
  member::JoinOptions join;
  join.coordinator = config_.coordinator;
  join.job = config_.job;
  join.token = config_.token;
  join.token_file = config_.token_file;
  join.ca_file = config_.ca_file;
  join.role = control::Role::kWorker;
  join.index = config_.worker;
  join.local_rank = config_.local_rank;
  join.local_size = config_.local_size;
  join.address = stages_->address();
  join.endpoints = stages_->endpoints();
  join.network = network_id();
  join.bits_per_second = config_.bits_per_second;
  join.timeout = config_.open_timeout;
  join.plan_timeout = config_.plan_timeout;
  GLN_ASSIGN_OR_RETURN(client_, member::Client::start(env_, join, this));
  return loop_.start();
}

absl::StatusOr<uint32_t> Rank::declare(plan::Tensor tensor) {
  const bool accumulates = tensor.accumulates;
  GLN_ASSIGN_OR_RETURN(const uint32_t id, declarations_.declare(std::move(tensor)));
  // All ranks declare tensors at about the same time, but may close at very different times. So the tensor for
  // wait_for_all_ranks() is declared now.
  if (accumulates) GLN_RETURN_IF_ERROR(declarations_.declare(closing_tensor()).status());
  return id;
}

absl::StatusOr<uint64_t> Rank::push_pull(uint32_t tensor, const void* input, void* output, ReduceOp op) {
  GLN_RETURN_IF_ERROR(state_.usable());
  if (!is_valid(op)) {
    return absl::InvalidArgumentError(absl::StrCat("op ", static_cast<int>(op), " is not a value of gln_op"));
  }
  GLN_ASSIGN_OR_RETURN(plan::Tensor declared, declarations_.begin(tensor));
  if (absl::Status wrong = check(declared, input, output, op); !wrong.ok()) {
    declarations_.end(tensor);
    return wrong;
  }
  const Declarations::Unsent unsent = declarations_.take_unsent(tensor, op);
  if (!unsent.tensors.empty() || !unsent.operations.empty()) client_->declare(unsent.tensors, unsent.operations);
  const uint64_t handle = handles_.open();
  const size_t bytes = declared.bytes();
  DeclaredRequest state;
  state.request.handle = handle;
  state.request.op = op;
  state.request.input = {static_cast<std::byte*>(const_cast<void*>(input)), bytes};
  state.request.output = {static_cast<std::byte*>(output), bytes};
  state.request.requested_at = env_.clock->since_start();
  state.declaration = tensor;
  state.tensor = std::move(declared);
  if (begin_here(state)) return handle;
  loop_.post([this, state = std::move(state)]() mutable { begin(std::move(state)); });
  return handle;
}

// Begins a request on the caller's thread if it is small and the only one in flight. The I/O thread sends several
// requests together.
bool Rank::begin_here(DeclaredRequest& state) {
  if (state.tensor.bytes() > kBeginHereBytes || config_.local_size > 1 || !loop_.turn().TryLock()) return false;
  const bool first = requests_.empty() && loop_.nothing_posted();
  bool must_wake = false;
  std::vector<Outcome> outcomes;
  if (first) {
    begin(std::move(state));
    stages_->advance();
    must_wake = loop_.is_asleep() || stages_->has_work();
    requests_.take_outcomes(outcomes);
  }
  loop_.turn().Unlock();
  deliver_outcomes(outcomes);
  if (must_wake) stages_->wake();
  return first;
}

absl::Status Rank::register_memory(MutableBytes memory) {
  const absl::MutexLock lock(&loop_.turn());
  return stages_->register_memory(memory);
}

// Tries again for kReturnTimeout: transports may release a sent buffer some time after its result has arrived.
absl::Status Rank::unregister_memory(const void* begin) {
  const absl::Duration until = env_.clock->since_start() + kReturnTimeout;
  while (true) {
    {
      const absl::MutexLock lock(&loop_.turn());
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
  if (done.ok() && !*done) statistics_.add_wait(env_.clock->since_start() - start);
  return waited;
}

void Rank::step() {
  loop_.post([this] { statistics_.step(); });
}

// Waits, by a sum that needs all ranks, until all ranks have called this.
absl::Status Rank::wait_for_all_ranks() {
  GLN_ASSIGN_OR_RETURN(const uint32_t tensor, declare(closing_tensor()));
  int32_t one = 1;
  GLN_ASSIGN_OR_RETURN(const uint64_t handle, push_pull(tensor, &one, &one, ReduceOp::kSum));
  absl::Status outcome;
  GLN_RETURN_IF_ERROR(handles_.wait(handle, absl::InfiniteDuration(), &outcome));
  return outcome;
}

absl::Status Rank::close(Leave how) {
  absl::Status status = state_.usable();
  const bool gives_up = status.ok() && how == Leave::kFailed;
  if (gives_up) status = absl::AbortedError("the training process ended in error");
  if (status.ok() && declarations_.any_accumulates() && how == Leave::kCleanly) status = wait_for_all_ranks();
  if (status.ok()) {
    status =
        handles_.wait_all(state_.deadline())
            ? wait_until_quiet()
            : absl::DeadlineExceededError("push_pulls are still in flight after the deadline; the session is closed");
  }
  send_last_report();
  const bool returns = how == Leave::kToReturn;
  while (!(returns ? client_->come_again(status, kLeaveTimeout) : client_->leave(status, kLeaveTimeout))) {
    status = wait_until_quiet();
  }
  stop();
  const bool is_news = !gives_up && !(returns && is_workers_changed(status));
  return is_news ? status : absl::OkStatus();
}

// Waits until no member needs this rank under the latest plan that it knows, or until the deadline.
absl::Status Rank::wait_until_quiet() {
  // An earlier observation may be of an earlier plan. The I/O thread observes again after this message.
  auto forgotten = std::make_shared<absl::Notification>();
  loop_.post([this, forgotten] {
    closing_ = true;
    observed_.quiet = false;
    state_.set_quiet(false);
    forgotten->Notify();
  });
  forgotten->WaitForNotificationWithTimeout(kLeaveTimeout);
  return state_.wait_until_quiet();
}

void Rank::send_last_report() {
  auto reported = std::make_shared<absl::Notification>();
  loop_.post([this, reported] {
    client_->report(report(env_.clock->since_start(), true));
    reported->Notify();
  });
  reported->WaitForNotificationWithTimeout(kLeaveTimeout);
}

void Rank::stop() {
  if (client_ != nullptr) client_->stop();
  loop_.stop();
  state_.close();
  handles_.close(absl::FailedPreconditionError("the session is closed"));
}

}  // namespace gleaner::runtime
