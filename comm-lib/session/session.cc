#include "comm-lib/session/session.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/checks.h"
#include "comm-lib/session/core.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"

namespace gleaner::session {

// --- requests

absl::Status Session::Core::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  const uint32_t before = plan_ == nullptr ? 0 : plan_->epoch;
  if (plan_ != nullptr) GLN_RETURN_IF_ERROR(plan::check_successor(*plan, *plan_));
  // Said under the plan to which it belongs. Whoever can't hear it is told all when there is a connection.
  for (uint32_t i = 0; i < owners_.size(); ++i) {
    if (queue_.is_connected(i)) {
      flush_acks(i, actions);
    } else {
      acks_.take(i);
    }
  }
  owners_.resize(plan->members.size());
  if (plan_ != nullptr) move(*plan, now);
  partitions_.resize(plan->partitions.size());
  accumulated_.resize(plan->partitions.size());
  acks_.resize(plan->members.size());
  retention_.resize(plan->partitions.size(), plan->members.size(), plan->workers);
  queue_.apply(plan.get());
  plan_ = std::move(plan);
  if (!failure_.ok()) return absl::OkStatus();
  for (uint32_t i = 0; i < owners_.size(); ++i) {
    if (queue_.is_connected(i)) tell_progress(i, before, actions);
  }
  send_pushes(now, actions);
  return absl::OkStatus();
}

// What the plan in force and the later one see differently.
void Session::Core::move(const plan::Plan& later, absl::Duration now) {
  for (uint32_t i = 0; i < partitions_.size(); ++i) {
    if (!plan::has_moved(later.partitions[i], plan_->epoch)) continue;
    retention_.detach(i);
    PartitionState& state = partitions_[i];
    if (!state.missing) continue;
    ++counters_.moved;
    OwnerState& from = owners_[plan_->partitions[i].owner];
    --from.missing;
    from.pushed -= state.pushed ? 1 : 0;
    if (state.moved) GLN_RARE("session: a partition moves twice in a step");
    state.moved = true;
    OwnerState& to = owners_[later.partitions[i].owner];
    if (to.missing++ == 0) to.since = now;
    to.pushed += state.pushed ? 1 : 0;
  }
  for (uint32_t i = 0; i < plan_->members.size(); ++i) {
    if (later.members[i].since != plan_->members[i].since) retention_.forget(i);
  }
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
    partitions_[i].missing = true;
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
  requests_[index] = {true, begin, end, end - begin, offset, std::move(request), {}};
  ++active_;
  ++started_;
  return index;
}

// Ends the requests that have all results and whose input nobody refers to any more.
void Session::Core::complete(Actions& actions) {
  std::erase_if(whole_, [&](uint32_t index) {
    RequestState& request = requests_[index];
    if (!request.asked.input.sole_owner()) return false;
    for (const RequestState::Held& held : request.held) {
      std::memcpy(request.asked.output.data() + held.offset, held.result.bytes().data(), held.result.size());
    }
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
  while (!GLN_INJECT("session: pushes wait for the next tick")) {
    const std::optional<uint32_t> partition = queue_.next(now);
    if (!partition.has_value()) return;
    push(*partition, now, actions);
  }
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

// --- connections and time

void Session::Core::on_connected(uint32_t owner, absl::Duration now, Actions& actions) {
  if (owner >= owners_.size()) return;
  if (queue_.is_connected(owner)) queue_.disconnect(owner);
  queue_.connect(owner);
  // What was said may have been lost with the last connection.
  acks_.take(owner);
  tell_progress(owner, 0, actions);
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
  ask_for_release(now, actions);
  complete(actions);
}

// To whom it can tell them: at the end, who is out of reach may have left.
bool Session::Core::owes_acks() const {
  for (uint32_t i = 0; i < owners_.size(); ++i) {
    if (queue_.is_connected(i) && !acks_.empty(i)) return true;
  }
  return false;
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

absl::Status Session::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  return core_->apply(std::move(plan), now, actions);
}
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
  return core_->on_frame(owner, header, std::move(payload), now, actions);
}
void Session::set_round_trip(absl::Duration round_trip) { core_->queue_.set_round_trip(round_trip); }
void Session::on_tick(absl::Duration now, Actions& actions) { core_->on_tick(now, actions); }
void Session::fail(const absl::Status& status, Actions& actions) { core_->fail(status, actions); }
uint64_t Session::step(uint32_t tensor, uint32_t partition) const {
  const uint32_t index = core_->plan_->first_partition[tensor] + partition;
  return index < core_->plan_->first_partition[tensor + 1] ? core_->partitions_[index].step : 0;
}
bool Session::idle() const {
  if (core_->active_ > 0) return false;
  if (core_->ending_) return !core_->owes_acks();
  return core_->acks_.empty() && core_->retention_.relied_on() == 0;
}
std::vector<uint32_t> Session::waiting_for() const { return core_->waiting_for(); }
void Session::set_ending() { core_->ending_ = true; }
const Counters& Session::counters() const {
  core_->counters_.retained_bytes = core_->retention_.bytes() + core_->accumulated_bytes_;
  core_->counters_.outstanding_bytes = core_->queue_.outstanding_bytes();
  core_->counters_.window_used_bytes = core_->queue_.window_used_bytes();
  core_->counters_.window_bytes = core_->queue_.window_bytes();
  return core_->counters_;
}

}  // namespace gleaner::session
