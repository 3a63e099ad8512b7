#include "comm-lib/runtime/rank.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "comm-lib/runtime/workers_changed.h"
#include "common/base/own_network.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {
namespace {

// With this delay the coordinator fails the job first, and its error names the missing members.
constexpr absl::Duration kGrace = absl::Seconds(5);
constexpr absl::Duration kLeaveTimeout = absl::Seconds(2);

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

absl::Status check_group(const plan::Tensor& tensor, const gln_rank_info& info) {
  if (info.local_ranks > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "tensor '", tensor.name, "': workers have ", info.local_ranks,
        " local ranks each, and only ranks that are workers sum in groups: start the job without --local-ranks"));
  }
  const bool is_ascending =
      std::ranges::adjacent_find(tensor.group, std::ranges::greater_equal()) == tensor.group.end();
  if (tensor.group.empty() || !is_ascending || tensor.group.back() >= info.ranks || !tensor.has(info.rank)) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", tensor.name, "': the members are ",
                                                   absl::StrJoin(tensor.group, ", "), "; expected ranks of ",
                                                   info.ranks, " in ascending order, rank ", info.rank, " among them"));
  }
  return absl::OkStatus();
}

}  // namespace

Rank::Rank(const Config& config)
    : config_(config),
      system_({absl::StrCat("worker/", config.worker), config.log_level}),
      env_(system_.env()),
      state_(config.local_rank),
      io_(env_, &state_, &declarations_, &handles_, &statistics_) {}

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
  GLN_RETURN_IF_ERROR(io_.open(config_, &*kernels_));
  // Local rank 0 serves metrics: under torchrun all local ranks have the same GLEANER_METRICS.
  if (config_.metrics.has_value() && config_.local_rank == 0) {
    GLN_RETURN_IF_ERROR(statistics_.serve_metrics(*config_.metrics, config_));
  }
  member::JoinOptions join;
  join.coordinator = config_.coordinator;
  join.identity.job = config_.job;
  join.token = config_.token;
  join.token_file = config_.token_file;
  join.ca_file = config_.ca_file;
  join.identity.role = control::Role::kWorker;
  join.identity.index = config_.worker;
  join.identity.local_rank = config_.local_rank;
  join.identity.local_size = config_.local_size;
  if (const network::NetworkStage* const network = io_.network(); network != nullptr) {
    join.identity.address = network->address().to_string();
    join.identity.endpoints = network->endpoints();
  }
  join.identity.network = network_id();
  join.identity.bits_per_second = config_.bits_per_second;
  join.timeout = config_.open_timeout;
  join.plan_timeout = config_.plan_timeout;
  GLN_ASSIGN_OR_RETURN(client_, member::Client::start(env_, join, &io_));
  return io_.start(client_.get());
}

absl::StatusOr<uint32_t> Rank::declare(plan::Tensor tensor) {
  const bool accumulates = tensor.accumulates;
  GLN_ASSIGN_OR_RETURN(const uint32_t id, declarations_.declare(std::move(tensor)));
  // All ranks declare tensors at about the same time, but may close at very different times. So the tensor for
  // wait_for_all_ranks() is declared now.
  if (accumulates) GLN_RETURN_IF_ERROR(declarations_.declare(closing_tensor()).status());
  return id;
}

absl::StatusOr<uint32_t> Rank::declare_for_members(plan::Tensor tensor) {
  GLN_RETURN_IF_ERROR(state_.usable());
  const gln_rank_info info = rank_info();
  GLN_RETURN_IF_ERROR(check_group(tensor, info));
  if (tensor.group.size() == info.ranks) tensor.group.clear();
  return declare(std::move(tensor));
}

absl::StatusOr<uint64_t> Rank::push_pull(uint32_t tensor, const void* input, void* output, ReduceOp op,
                                         std::optional<DeviceStream> gpu) {
  GLN_RETURN_IF_ERROR(state_.usable());
  if (!is_valid(op)) {
    return absl::InvalidArgumentError(absl::StrCat("op ", static_cast<int>(op), " is not a value of gln_op"));
  }
  GLN_ASSIGN_OR_RETURN(plan::Tensor declared, declarations_.begin(tensor));
  if (absl::Status wrong = check(declared, input, output, op); !wrong.ok()) {
    declarations_.end(tensor);
    return wrong;
  }
  DeclaredRequest request;
  request.request.op = op;
  request.request.input = {static_cast<std::byte*>(const_cast<void*>(input)), declared.memory_bytes()};
  request.request.output = {static_cast<std::byte*>(output), declared.memory_bytes()};
  std::unique_ptr<DeviceMarks> marks;
  if (const absl::Status wrong = device_.begin(gpu, request.request, marks); !wrong.ok()) {
    declarations_.end(tensor);
    // Other ranks would wait for this one, whose program may catch the error and go on without its GPU.
    if (absl::IsDataLoss(wrong)) io_.end_session(wrong);
    return absl::Status(wrong.code(), absl::StrCat("tensor '", declared.name, "': ", wrong.message()));
  }
  const Declarations::Unsent unsent = declarations_.take_unsent(tensor, op);
  if (!unsent.tensors.empty() || !unsent.operations.empty()) client_->declare(unsent.tensors, unsent.operations);
  const uint64_t handle = handles_.open(std::move(marks));
  request.request.handle = handle;
  request.request.requested_at = env_.clock->since_start();
  request.declaration = tensor;
  request.tensor = std::move(declared);
  io_.push_pull(std::move(request));
  return handle;
}

absl::Status Rank::add_group(uint32_t group, std::vector<uint32_t> members) {
  GLN_RETURN_IF_ERROR(state_.usable());
  return io_.add_group(group, std::move(members));
}

absl::StatusOr<bool> Rank::has_arrived(uint32_t group) {
  GLN_RETURN_IF_ERROR(state_.usable());
  return io_.has_arrived(group);
}

absl::Status Rank::remove_group(uint32_t group) {
  GLN_RETURN_IF_ERROR(state_.usable());
  return io_.remove_group(group);
}

absl::StatusOr<uint64_t> Rank::call(executor::Call call) {
  GLN_RETURN_IF_ERROR(state_.usable());
  if (state_.rank_info().local_ranks > 1) return absl::FailedPreconditionError("there is no group");
  call.id = handles_.open();
  const uint64_t handle = call.id;
  io_.call(std::move(call));
  return handle;
}

absl::StatusOr<std::string> Rank::tensor_plan(uint32_t tensor) {
  GLN_ASSIGN_OR_RETURN(const std::string name, declarations_.name_of(tensor));
  return io_.tensor_plan(name);
}

absl::Status Rank::wait(uint64_t handle, absl::Duration timeout, std::optional<device::CallerStream> stream) {
  const auto done = handles_.done(handle);
  const absl::Duration start = env_.clock->since_start();
  absl::StatusOr<Handles::Ended> ended = handles_.wait(handle, timeout);
  if (done.ok() && !*done) statistics_.add_wait(env_.clock->since_start() - start);
  if (absl::IsDeadlineExceeded(ended.status())) {
    const std::string late = io_.describe_call(handle);
    if (!late.empty()) return absl::DeadlineExceededError(absl::StrCat(ended.status().message(), ": ", late));
  }
  GLN_RETURN_IF_ERROR(ended.status());
  if (ended->marks == nullptr) return ended->outcome;
  // Copies may still write to the memory of a request that has failed, so the stream waits for them, too.
  absl::Status held = device_.hold(*ended->marks, stream);
  if (held.ok() || !ended->outcome.ok()) return ended->outcome;
  handles_.put_back(handle, *std::move(ended));
  return held;
}

// Waits, by a sum that needs all ranks, until all ranks have called this.
absl::Status Rank::wait_for_all_ranks() {
  GLN_ASSIGN_OR_RETURN(const uint32_t tensor, declare(closing_tensor()));
  int32_t one = 1;
  GLN_ASSIGN_OR_RETURN(const uint64_t handle, push_pull(tensor, &one, &one, ReduceOp::kSum));
  return wait(handle, absl::InfiniteDuration());
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
  io_.send_last_report();
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
  io_.begin_to_leave();
  return state_.wait_until_quiet();
}

void Rank::stop() {
  if (client_ != nullptr) client_->stop();
  io_.stop();
  state_.close();
  handles_.close(absl::FailedPreconditionError("the session is closed"));
}

}  // namespace gleaner::runtime
