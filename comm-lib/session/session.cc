#include "comm-lib/session/session.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/ack_batches.h"
#include "comm-lib/session/checks.h"
#include "comm-lib/session/send_queue.h"
#include "common/base/status_macros.h"
#include "common/plan/extends.h"

namespace gleaner::session {
namespace {

struct TensorState {
  bool active = false;
  uint64_t step = 0;     // of the request in flight, or else of the next one
  uint32_t missing = 0;  // partitions without a result
  Request request;
};

// What is missing from an owner, for waiting_for().
struct OwnerState {
  uint32_t missing = 0;  // partitions of requests in flight without a result
  uint32_t pushed = 0;   // of these, pushed at least once
  absl::Duration since;  // when it last gave something, or when it was first asked after that
};

}  // namespace

struct Session::Core {
  Core(const Options& options, BufferPool* pool)
      : options_(options),
        pool_(pool),
        queue_(options.window_bytes, options.worker, options.stall_after, options.defer_retry),
        acks_(pool) {}

  absl::Status apply(std::shared_ptr<const plan::Plan> plan);
  absl::Status start(Request request, absl::Duration now, Actions& actions);
  void on_connected(uint32_t owner, absl::Duration now, Actions& actions);
  absl::Status on_frame(uint32_t owner, const wire::Header& header, const Buffer& payload, absl::Duration now,
                        Actions& actions);
  void on_tick(absl::Duration now, Actions& actions);
  void fail(const absl::Status& status, Actions& actions);
  std::vector<uint32_t> waiting_for() const;

  absl::Status check_answer(const wire::Header& header) const;

  uint64_t finished_steps(uint32_t partition) const;
  void on_result(uint32_t owner, const wire::Header& header, const Buffer& payload, absl::Duration now,
                 Actions& actions);
  void send_pushes(absl::Duration now, Actions& actions);
  void push(uint32_t partition, absl::Duration now, Actions& actions);
  void acknowledge(uint32_t owner, const wire::PartitionKey& key, Actions& actions);
  void flush_acks(uint32_t owner, Actions& actions);
  void complete(Actions& actions);
  wire::Header header_of(wire::FrameType type, const Buffer& payload) const;

  const Options options_;
  BufferPool* const pool_;
  std::shared_ptr<const plan::Plan> plan_;
  SendQueue queue_;
  AckBatches acks_;
  std::vector<TensorState> tensors_;
  std::vector<bool> pushed_;  // by partition: in the step in flight
  std::vector<OwnerState> owners_;
  std::vector<uint32_t> whole_;  // tensors with all results whose input a frame may still refer to
  uint32_t active_ = 0;          // requests in flight
  absl::Status failure_;         // of fail()
  Counters counters_;
};

// --- requests

absl::Status Session::Core::apply(std::shared_ptr<const plan::Plan> plan) {
  if (plan_ != nullptr && (plan->epoch <= plan_->epoch || !plan::extends(*plan, *plan_))) {
    return absl::FailedPreconditionError(
        absl::StrCat("expected a plan above epoch ", plan_->epoch, " that only adds tensors to it, got one of epoch ",
                     plan->epoch, " with ", plan->tensors.size(), " tensors and fence ", plan->fence));
  }
  tensors_.resize(plan->tensors.size());
  whole_.reserve(plan->tensors.size());
  pushed_.resize(plan->partitions.size());
  owners_.resize(plan->members.size());
  acks_.resize(plan->members.size());
  queue_.apply(plan.get());
  plan_ = std::move(plan);
  return absl::OkStatus();
}

absl::Status Session::Core::start(Request request, absl::Duration now, Actions& actions) {
  if (!failure_.ok()) {
    actions.done.push_back({request.id, failure_});
    return absl::OkStatus();
  }
  if (plan_ == nullptr) return absl::FailedPreconditionError("a push_pull before the first plan");
  GLN_RETURN_IF_ERROR(check_request(*plan_, request));
  if (tensors_[request.tensor].active) {
    return absl::FailedPreconditionError(absl::StrCat("tensor ", plan_->tensors[request.tensor].name,
                                                      " is still in flight: wait for its last push_pull first"));
  }
  const uint32_t index = request.tensor;
  const uint32_t first = plan_->first_partition[index];
  const uint32_t end = plan_->first_partition[index + 1];
  TensorState& tensor = tensors_[index];
  tensor.active = true;
  tensor.missing = end - first;
  tensor.request = std::move(request);
  ++active_;
  for (uint32_t i = first; i < end; ++i) {
    OwnerState& owner = owners_[plan_->partitions[i].owner];
    if (owner.missing++ == 0) owner.since = now;
    pushed_[i] = false;
    queue_.make_ready(i);
  }
  if (tensor.missing == 0) whole_.push_back(index);
  send_pushes(now, actions);
  complete(actions);
  return absl::OkStatus();
}

// Ends the requests that have all results and whose input nobody refers to any more.
void Session::Core::complete(Actions& actions) {
  std::erase_if(whole_, [&](uint32_t index) {
    TensorState& tensor = tensors_[index];
    if (!tensor.request.input.sole_owner()) return false;
    actions.done.push_back({tensor.request.id, absl::OkStatus()});
    tensor.request = {};
    tensor.active = false;
    ++tensor.step;
    --active_;
    return true;
  });
}

void Session::Core::fail(const absl::Status& status, Actions& actions) {
  if (!failure_.ok()) return;
  failure_ = status;
  for (TensorState& tensor : tensors_) {
    if (!tensor.active) continue;
    actions.done.push_back({tensor.request.id, status});
    tensor = {};
  }
  active_ = 0;
  whole_.clear();
  queue_.clear();
  for (uint32_t i = 0; i < owners_.size(); ++i) acks_.take(i);
  std::fill(owners_.begin(), owners_.end(), OwnerState{});
}

// --- pushes

void Session::Core::send_pushes(absl::Duration now, Actions& actions) {
  while (const std::optional<uint32_t> partition = queue_.next(now)) push(*partition, now, actions);
}

void Session::Core::push(uint32_t index, absl::Duration now, Actions& actions) {
  const plan::Partition& partition = plan_->partitions[index];
  const TensorState& tensor = tensors_[partition.tensor];
  Buffer payload = tensor.request.input.slice(partition.offset, partition.bytes);
  if (pushed_[index]) {
    // The owner may have the first copy, so the result may come, and be written over an input that is also the output,
    // while this frame still waits to be sent: it carries a copy.
    ++counters_.repeated_pushes;
    Buffer copy = pool_->take(partition.bytes);
    std::memcpy(copy.bytes().data(), payload.bytes().data(), partition.bytes);
    payload = std::move(copy);
  } else {
    OwnerState& owner = owners_[partition.owner];
    if (owner.pushed++ == 0) owner.since = now;
    pushed_[index] = true;
  }
  counters_.pushed_bytes += partition.bytes;
  flush_acks(partition.owner, actions);
  wire::Header header = header_of(wire::FrameType::kPush, payload);
  header.data_type = plan_->tensors[partition.tensor].type;
  header.op = tensor.request.op;
  header.tensor = partition.tensor;
  header.partition = index - plan_->first_partition[partition.tensor];
  header.step = tensor.step;
  actions.sends.push_back({partition.owner, header, std::move(payload)});
}

wire::Header Session::Core::header_of(wire::FrameType type, const Buffer& payload) const {
  wire::Header header;
  header.type = type;
  header.job = options_.job;
  header.epoch = plan_->epoch;
  header.sender = options_.worker;
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  return header;
}

// --- acknowledgements

void Session::Core::acknowledge(uint32_t owner, const wire::PartitionKey& key, Actions& actions) {
  if (acks_.add(owner, key)) flush_acks(owner, actions);
}

void Session::Core::flush_acks(uint32_t owner, Actions& actions) {
  Buffer payload = acks_.take(owner);
  if (payload.empty()) return;
  const wire::Header header = header_of(wire::FrameType::kAck, payload);
  actions.sends.push_back({owner, header, std::move(payload)});
}

// Steps of this partition whose result is here.
uint64_t Session::Core::finished_steps(uint32_t partition) const {
  const TensorState& tensor = tensors_[plan_->partitions[partition].tensor];
  return tensor.step + (tensor.active && queue_.is_idle(partition) ? 1 : 0);
}

// --- connections and time

void Session::Core::on_connected(uint32_t owner, absl::Duration now, Actions& actions) {
  if (owner >= owners_.size()) return;
  if (queue_.is_connected(owner)) queue_.disconnect(owner);
  queue_.connect(owner);
  // Acknowledgements may have been lost with the last connection; so the latest of each partition is said again.
  acks_.take(owner);
  for (uint32_t index : queue_.owned_by(owner)) {
    const uint64_t steps = finished_steps(index);
    const uint32_t tensor = plan_->partitions[index].tensor;
    if (steps > 0) acknowledge(owner, {steps - 1, tensor, index - plan_->first_partition[tensor]}, actions);
  }
  flush_acks(owner, actions);
  send_pushes(now, actions);
  complete(actions);
}

void Session::Core::on_tick(absl::Duration now, Actions& actions) {
  if (plan_ == nullptr) return;
  if (queue_.tick(now)) ++counters_.stalls;
  send_pushes(now, actions);
  if (!acks_.empty()) {
    for (uint32_t i = 0; i < owners_.size(); ++i) {
      if (queue_.is_connected(i)) flush_acks(i, actions);
    }
  }
  complete(actions);
}

// --- frames

// That a frame which is no late copy answers a push of this worker.
absl::Status Session::Core::check_answer(const wire::Header& header) const {
  const TensorState& tensor = tensors_[header.tensor];
  if (!tensor.active || header.step > tensor.step ||
      !pushed_[plan_->first_partition[header.tensor] + header.partition]) {
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(header.sender), " sent ",
                                                      describe(*plan_, header),
                                                      ", to which this worker has not pushed its part"));
  }
  const DataType type = plan_->tensors[header.tensor].type;
  const bool is_result = header.type == wire::FrameType::kResult;
  if (is_result && (header.data_type != type || header.op != tensor.request.op)) {
    return absl::InvalidArgumentError(absl::StrCat(plan_->member_name(header.sender), " sent ",
                                                   describe(*plan_, header), " as ", name_of(header.data_type), " op ",
                                                   static_cast<int>(header.op), ", expected ", name_of(type), " op ",
                                                   static_cast<int>(tensor.request.op)));
  }
  return absl::OkStatus();
}

absl::Status Session::Core::on_frame(uint32_t owner, const wire::Header& header, const Buffer& payload,
                                     absl::Duration now, Actions& actions) {
  if (!failure_.ok()) return absl::OkStatus();
  if (plan_ == nullptr) return absl::FailedPreconditionError("a frame before the first plan");
  GLN_RETURN_IF_ERROR(check_frame(*plan_, options_.job, owner, header, payload));
  // An owner may be ahead of this worker by a plan, so there is no upper limit to its epoch.
  if (header.epoch < plan_->fence) return absl::OkStatus();
  const uint32_t index = plan_->first_partition[header.tensor] + header.partition;
  const bool is_late = header.step < finished_steps(index);
  if (!is_late) GLN_RETURN_IF_ERROR(check_answer(header));
  if (header.type == wire::FrameType::kDefer) {
    if (!is_late && queue_.defer(index, now)) {
      ++counters_.deferred;
      owners_[owner].since = now;
    }
  } else if (is_late) {
    ++counters_.duplicate_results;
    acknowledge(owner, {header.step, header.tensor, header.partition}, actions);
  } else {
    on_result(owner, header, payload, now, actions);
  }
  send_pushes(now, actions);
  complete(actions);
  return absl::OkStatus();
}

void Session::Core::on_result(uint32_t owner, const wire::Header& header, const Buffer& payload, absl::Duration now,
                              Actions& actions) {
  const uint32_t index = plan_->first_partition[header.tensor] + header.partition;
  const plan::Partition& partition = plan_->partitions[index];
  TensorState& tensor = tensors_[header.tensor];
  std::memcpy(tensor.request.output.data() + partition.offset, payload.bytes().data(), partition.bytes);
  ++counters_.results;
  queue_.finish(index, now);
  owners_[owner].since = now;
  --owners_[owner].missing;
  --owners_[owner].pushed;
  acknowledge(owner, {header.step, header.tensor, header.partition}, actions);
  if (--tensor.missing == 0) whole_.push_back(header.tensor);
}

// --- for people

std::vector<uint32_t> Session::Core::waiting_for() const {
  std::vector<uint32_t> waiting;
  for (uint32_t i = 0; i < owners_.size(); ++i) {
    const bool unreachable = owners_[i].missing > 0 && !queue_.is_connected(i);
    if (owners_[i].pushed > 0 || unreachable) waiting.push_back(i);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [this](uint32_t a, uint32_t b) { return owners_[a].since < owners_[b].since; });
  return waiting;
}

// --- public surface

Session::Session(const Options& options, BufferPool* pool) : core_(std::make_unique<Core>(options, pool)) {}
Session::~Session() = default;

absl::Status Session::apply(std::shared_ptr<const plan::Plan> plan) { return core_->apply(std::move(plan)); }
absl::Status Session::start(Request request, absl::Duration now, Actions& actions) {
  return core_->start(std::move(request), now, actions);
}
void Session::on_connected(uint32_t owner, absl::Duration now, Actions& actions) {
  core_->on_connected(owner, now, actions);
}
void Session::on_disconnected(uint32_t owner) {
  if (owner < core_->owners_.size()) core_->queue_.disconnect(owner);
}
absl::Status Session::on_frame(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                               Actions& actions) {
  return core_->on_frame(owner, header, payload, now, actions);
}
void Session::on_tick(absl::Duration now, Actions& actions) { core_->on_tick(now, actions); }
void Session::fail(const absl::Status& status, Actions& actions) { core_->fail(status, actions); }
uint64_t Session::step(uint32_t tensor) const { return core_->tensors_[tensor].step; }
bool Session::idle() const { return core_->active_ == 0 && core_->acks_.empty(); }
std::vector<uint32_t> Session::waiting_for() const { return core_->waiting_for(); }
const Counters& Session::counters() const {
  core_->counters_.outstanding_bytes = core_->queue_.outstanding_bytes();
  core_->counters_.window_used_bytes = core_->queue_.window_used_bytes();
  core_->counters_.window_bytes = core_->queue_.window_bytes();
  return core_->counters_;
}

}  // namespace gleaner::session
