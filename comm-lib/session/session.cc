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

constexpr uint32_t kNoRequest = UINT32_MAX;

struct PartitionState {
  uint64_t step = 0;              // steps whose result is here
  uint32_t request = kNoRequest;  // in flight, that it is part of: index in requests_
  bool pushed = false;            // in this step, and its result is not here yet
};

struct RequestState {
  bool active = false;
  uint32_t begin = 0;  // of its partitions in the plan
  uint32_t end = 0;
  uint32_t missing = 0;  // of these, without a result
  uint64_t offset = 0;   // of its memory in the tensor
  Request asked;
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

  bool in_flight(const Request& request) const;
  uint32_t open_request(Request request);
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
  std::vector<PartitionState> partitions_;  // as in the plan
  std::vector<RequestState> requests_;
  std::vector<uint32_t> free_;  // of requests_
  std::vector<OwnerState> owners_;
  std::vector<uint32_t> whole_;  // requests with all results whose input a frame may still refer to
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
  partitions_.resize(plan->partitions.size());
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
  if (in_flight(request)) {
    return absl::FailedPreconditionError(absl::StrCat("tensor ", plan_->tensors[request.tensor].name,
                                                      " is still in flight: wait for its last push_pull first"));
  }
  const uint32_t index = open_request(std::move(request));
  for (uint32_t i = requests_[index].begin; i < requests_[index].end; ++i) {
    OwnerState& owner = owners_[plan_->partitions[i].owner];
    if (owner.missing++ == 0) owner.since = now;
    partitions_[i].request = index;
    queue_.make_ready(i);
  }
  if (requests_[index].missing == 0) whole_.push_back(index);
  send_pushes(now, actions);
  complete(actions);
  return absl::OkStatus();
}

// Whether one of its partitions is.
bool Session::Core::in_flight(const Request& request) const {
  const auto begin = partitions_.begin() + plan_->first_partition[request.tensor] + request.first;
  return std::any_of(begin, begin + partitions_of(*plan_, request),
                     [](const PartitionState& partition) { return partition.request != kNoRequest; });
}

// Its index in requests_.
uint32_t Session::Core::open_request(Request request) {
  const uint32_t begin = plan_->first_partition[request.tensor] + request.first;
  const uint32_t end = begin + partitions_of(*plan_, request);
  if (free_.empty()) {
    free_.push_back(static_cast<uint32_t>(requests_.size()));
    requests_.emplace_back();
    free_.reserve(requests_.size());
    whole_.reserve(requests_.size());
  }
  const uint32_t index = free_.back();
  free_.pop_back();
  const uint64_t offset = begin < end ? plan_->partitions[begin].offset : 0;
  requests_[index] = {true, begin, end, end - begin, offset, std::move(request)};
  ++active_;
  return index;
}

// Ends the requests that have all results and whose input nobody refers to any more.
void Session::Core::complete(Actions& actions) {
  std::erase_if(whole_, [&](uint32_t index) {
    RequestState& request = requests_[index];
    if (!request.asked.input.sole_owner()) return false;
    actions.done.push_back({request.asked.id, absl::OkStatus()});
    for (uint32_t i = request.begin; i < request.end; ++i) partitions_[i].request = kNoRequest;
    request = {};
    free_.push_back(index);
    --active_;
    return true;
  });
}

void Session::Core::fail(const absl::Status& status, Actions& actions) {
  if (!failure_.ok()) return;
  failure_ = status;
  for (RequestState& request : requests_) {
    if (!request.active) continue;
    actions.done.push_back({request.asked.id, status});
    request = {};
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
  PartitionState& state = partitions_[index];
  const RequestState& request = requests_[state.request];
  Buffer payload = request.asked.input.slice(partition.offset - request.offset, partition.bytes);
  if (state.pushed) {
    // The owner may have the first copy, so the result may come, and be written over an input that is also the output,
    // while this frame still waits to be sent: it carries a copy.
    ++counters_.repeated_pushes;
    Buffer copy = pool_->take(partition.bytes);
    std::memcpy(copy.bytes().data(), payload.bytes().data(), partition.bytes);
    payload = std::move(copy);
  } else {
    OwnerState& owner = owners_[partition.owner];
    if (owner.pushed++ == 0) owner.since = now;
    state.pushed = true;
  }
  counters_.pushed_bytes += partition.bytes;
  flush_acks(partition.owner, actions);
  wire::Header header = header_of(wire::FrameType::kPush, payload);
  header.data_type = plan_->tensors[partition.tensor].type;
  header.op = request.asked.op;
  header.tensor = partition.tensor;
  header.partition = index - plan_->first_partition[partition.tensor];
  header.step = state.step;
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

// --- connections and time

void Session::Core::on_connected(uint32_t owner, absl::Duration now, Actions& actions) {
  if (owner >= owners_.size()) return;
  if (queue_.is_connected(owner)) queue_.disconnect(owner);
  queue_.connect(owner);
  // Acknowledgements may have been lost with the last connection; so the latest of each partition is said again.
  acks_.take(owner);
  for (uint32_t index : queue_.owned_by(owner)) {
    const uint64_t steps = partitions_[index].step;
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
  const PartitionState& state = partitions_[plan_->first_partition[header.tensor] + header.partition];
  if (!state.pushed || header.step != state.step) {
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(header.sender), " sent ",
                                                      describe(*plan_, header),
                                                      ", to which this worker has not pushed its part"));
  }
  const ReduceOp op = requests_[state.request].asked.op;
  const DataType type = plan_->tensors[header.tensor].type;
  const bool is_result = header.type == wire::FrameType::kResult;
  if (is_result && (header.data_type != type || header.op != op)) {
    return absl::InvalidArgumentError(absl::StrCat(
        plan_->member_name(header.sender), " sent ", describe(*plan_, header), " as ", name_of(header.data_type),
        " op ", static_cast<int>(header.op), ", expected ", name_of(type), " op ", static_cast<int>(op)));
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
  const bool is_late = header.step < partitions_[index].step;
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
  PartitionState& state = partitions_[index];
  RequestState& request = requests_[state.request];
  std::memcpy(request.asked.output.data() + (partition.offset - request.offset), payload.bytes().data(),
              partition.bytes);
  ++state.step;
  state.pushed = false;
  ++counters_.results;
  queue_.finish(index, now);
  owners_[owner].since = now;
  --owners_[owner].missing;
  --owners_[owner].pushed;
  acknowledge(owner, {header.step, header.tensor, header.partition}, actions);
  if (--request.missing == 0) whole_.push_back(state.request);
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
void Session::set_round_trip(absl::Duration round_trip) { core_->queue_.set_round_trip(round_trip); }
void Session::on_tick(absl::Duration now, Actions& actions) { core_->on_tick(now, actions); }
void Session::fail(const absl::Status& status, Actions& actions) { core_->fail(status, actions); }
uint64_t Session::step(uint32_t tensor, uint32_t partition) const {
  const uint32_t index = core_->plan_->first_partition[tensor] + partition;
  return index < core_->plan_->first_partition[tensor + 1] ? core_->partitions_[index].step : 0;
}
bool Session::idle() const { return core_->active_ == 0 && core_->acks_.empty(); }
std::vector<uint32_t> Session::waiting_for() const { return core_->waiting_for(); }
const Counters& Session::counters() const {
  core_->counters_.outstanding_bytes = core_->queue_.outstanding_bytes();
  core_->counters_.window_used_bytes = core_->queue_.window_used_bytes();
  core_->counters_.window_bytes = core_->queue_.window_bytes();
  return core_->counters_;
}

}  // namespace gleaner::session
