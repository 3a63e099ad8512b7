#include "comm-lib/runtime/stages.h"

#include <poll.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {

Stages::Stages(const Env& env, const Config& config, const kernels::Kernels* kernels, StagesListener* listener)
    : env_(env), config_(config), kernels_(kernels), listener_(listener) {}

Stages::~Stages() = default;

absl::StatusOr<std::unique_ptr<Stages>> Stages::create(const Env& env, const Config& config,
                                                       const kernels::Kernels* kernels, trace::Recorder* recorder,
                                                       StagesListener* listener) {
  auto stages = std::unique_ptr<Stages>(new Stages(env, config, kernels, listener));
  if (stages->leads()) {
    const NetworkOptions options{
        config.job,        config.address,     config.advertise, config.window_bytes, config.summer_memory_bytes,
        config.transports, config.plan_timeout};
    GLN_ASSIGN_OR_RETURN(stages->network_, Network::create(env, options, kernels, recorder, stages.get()));
  } else {
    GLN_ASSIGN_OR_RETURN(stages->waker_, Waker::create());
  }
  return stages;
}

std::string Stages::address() const { return leads() ? network_->address().to_string() : ""; }

std::vector<std::string> Stages::endpoints() const {
  return leads() ? network_->endpoints() : std::vector<std::string>();
}

std::string Stages::describe_transports() const { return leads() ? network_->describe_transports() : ""; }

void Stages::wake() {
  if (leads()) return network_->wake();
  waker_->wake();
}

absl::Status Stages::on_welcome(const control::Welcome& welcome) {
  if (leads()) network_->on_welcome(welcome);
  prepared_ = nullptr;
  const bool is_same = group_ != nullptr && secret_ == welcome.secret;
  if (config_.local_size == 1 || is_same) return absl::OkStatus();
  group_ = nullptr;
  pieces_ = {};
  group_memory_ = {};
  group_requests_.clear();
  group_connected_ = false;
  secret_ = welcome.secret;
  local::Options options;
  options.job = wire::job_number(config_.job);
  options.worker = config_.worker;
  options.local_rank = config_.local_rank;
  options.local_size = config_.local_size;
  options.secret = welcome.secret;
  options.timeout = config_.open_timeout;
  GLN_ASSIGN_OR_RETURN(group_, local::Group::create(env_, options, kernels_, this));
  return absl::OkStatus();
}

absl::Status Stages::prepare(std::shared_ptr<const plan::Plan> plan) {
  if (leads()) GLN_RETURN_IF_ERROR(network_->prepare(plan));
  prepared_ = std::move(plan);
  return absl::OkStatus();
}

absl::Status Stages::commit(uint32_t epoch) {
  if (leads()) GLN_RETURN_IF_ERROR(network_->commit(epoch));
  if (group_ == nullptr) return absl::OkStatus();
  if (prepared_ == nullptr || prepared_->epoch != epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat("the coordinator committed the plan of epoch ", epoch, ", which this rank has not prepared"));
  }
  std::vector<local::TensorShape> added;
  for (const Piece& piece : pieces_.extend(*prepared_)) {
    const DataType type = prepared_->tensors[piece.tensor].type;
    added.push_back({piece.bytes / size_of(type), type});
  }
  group_requests_.resize(pieces_.tensors());
  return group_->register_tensors(added);
}

void Stages::start(const Request& request) {
  if (group_ == nullptr) {
    return network_->start(
        {request.handle, request.tensor, request.op, users_memory_.borrow(request.input), request.output});
  }
  const uint32_t first = pieces_.first_of(request.tensor);
  const uint32_t count = pieces_.count_of(request.tensor);
  for (uint32_t i = first; i < first + count; ++i) {
    const Piece& piece = pieces_[i];
    const absl::Status status = group_->start(i, request.op, request.input.subspan(piece.offset, piece.bytes),
                                              request.output.subspan(piece.offset, piece.bytes));
    // An error concerns the whole tensor, so the first piece shows it and no other piece has started.
    if (!status.ok()) return listener_->on_done(request.handle, status);
  }
  group_requests_[request.tensor] = {request.handle, count, absl::OkStatus()};
}

// `id` is a handle if there is no group, and otherwise a piece.
void Stages::on_summed(uint64_t id, const absl::Status& status) {
  if (group_ == nullptr) return listener_->on_done(id, status);
  group_->publish(static_cast<uint32_t>(id), status);
}

void Stages::on_lost(uint32_t member, bool ends_job, const absl::Status& why) {
  listener_->on_lost(member, ends_job, why);
}

void Stages::on_coordinator_lost() {
  if (leads()) network_->on_coordinator_lost();
}

void Stages::on_coordinator_found() {
  if (leads()) network_->on_coordinator_found();
}

void Stages::on_coordinator_gone(const absl::Status& why) {
  if (leads()) network_->on_coordinator_gone(why);
}

void Stages::set_ending() {
  if (leads()) network_->set_ending();
}

void Stages::on_connected() { group_connected_ = true; }

void Stages::on_reduced(uint32_t piece, ReduceOp op, MutableBytes sum, MutableBytes result) {
  const Piece& reduced = pieces_[piece];
  if (reduced.accumulates) op = ReduceOp::kAccumulate;  // the local ranks' inputs were summed first
  // The sums share memory that stays as long as the group, so transports register it once. If that fails, they copy.
  if (!group_memory_.covers(sum)) group_memory_.add(group_->sums_beside(piece)).IgnoreError();
  network_->start({piece, reduced.tensor, op, group_memory_.borrow(sum), result, reduced.first, reduced.count});
}

void Stages::on_done(uint32_t piece, const absl::Status& status) {
  GroupRequest& request = group_requests_[pieces_[piece].tensor];
  request.status.Update(status);
  if (--request.missing == 0) listener_->on_done(request.handle, std::exchange(request.status, absl::OkStatus()));
}

void Stages::on_owner_follows(uint32_t epoch, bool by_rank) { listener_->on_owner_follows(epoch, by_rank); }

void Stages::on_failed(const absl::Status& status) { listener_->on_failed(status); }

void Stages::fail(const absl::Status& status) {
  if (leads()) network_->fail(status);
  if (group_ != nullptr) group_->fail(status);
}

void Stages::wait(absl::Duration timeout) {
  if (config_.local_size == 1) return network_->wait(timeout);
  if (leads() && network_->spin_before_wait(timeout)) return;
  pollfd descriptors[2] = {{leads() ? network_->descriptor() : waker_->descriptor(), POLLIN, 0}, {-1, POLLIN, 0}};
  if (group_ != nullptr) descriptors[1].fd = group_->descriptor();
  ::poll(descriptors, 2, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (waker_ != nullptr) waker_->clear();
}

void Stages::poll() {
  if (leads()) network_->poll();
  if (group_ != nullptr) group_->poll();
}

void Stages::advance() {
  if (leads()) network_->advance();
}

bool Stages::has_work() const { return (group_ != nullptr && group_->has_work()) || (leads() && network_->has_work()); }

bool Stages::connected() const {
  return (!leads() || network_->connected()) && (config_.local_size == 1 || group_connected_);
}

bool Stages::idle() const { return (!leads() || network_->idle()) && (group_ == nullptr || group_->idle()); }

bool Stages::may_leave() const { return (!leads() || network_->may_leave()) && (group_ == nullptr || group_->idle()); }

std::string Stages::describe_waiting() const {
  if (config_.local_size > 1 && !group_connected_) {
    return absl::StrCat("the other local ranks of worker ", config_.worker);
  }
  return leads() ? network_->describe_waiting() : "local rank 0 of this worker";
}

}  // namespace gleaner::runtime
