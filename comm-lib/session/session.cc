#include "comm-lib/session/session.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/checks.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"

namespace gleaner::session {

Session::Session(const Options& options, BufferPool* pool)
    : options_(options),
      pool_(pool),
      queue_(options.window_bytes, options.worker, options.stall_after, options.defer_retry),
      acks_(pool) {}

absl::Status Session::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  const uint32_t before = plan_ == nullptr ? 0 : plan_->epoch;
  if (plan_ != nullptr) GLN_RETURN_IF_ERROR(plan::check_successor(*plan, *plan_));
  // Acknowledgements belong to the plan under which they were gathered. on_connected() repeats them to owners that are
  // not connected.
  for (uint32_t i = 0; i < acks_.owners(); ++i) {
    if (queue_.is_connected(i)) {
      flush_acks(i, actions);
    } else {
      acks_.take(i);
    }
  }
  waits_.resize(plan->members.size());
  if (plan_ != nullptr) move(*plan, now);
  std::vector<bool> owns(plan->members.size());
  for (const plan::Partition& partition : plan->partitions) owns[partition.owner] = true;
  waits_.on_plan(plan->workers, owns, now);
  partitions_.resize(plan->partitions.size());
  pieces_.resize(plan->partitions.size());
  accumulated_.resize(plan->partitions.size());
  acks_.resize(plan->members.size());
  retention_.resize(plan->partitions.size(), plan->members.size(), plan->workers);
  queue_.apply(plan.get());
  plan_ = std::move(plan);
  if (!failure_.ok()) return absl::OkStatus();
  for (uint32_t i = 0; i < acks_.owners(); ++i) {
    if (queue_.is_connected(i)) tell_progress(i, before, actions);
  }
  send_pushes(now, actions);
  return absl::OkStatus();
}

// Carries out the changes of `later`: partitions that move, and places that get another member.
void Session::move(const plan::Plan& later, absl::Duration now) {
  for (uint32_t i = 0; i < partitions_.size(); ++i) {
    if (!plan::has_moved(later.partitions[i], plan_->epoch)) continue;
    retention_.detach(i);
    PartitionState& state = partitions_[i];
    if (!state.missing) continue;
    ++counters_.moved;
    waits_.on_move(plan_->partitions[i].owner, later.partitions[i].owner, state.pushed, now);
    if (state.moved) GLN_RARE("session: a partition moves twice in a step");
    state.moved = true;
  }
  for (uint32_t i = 0; i < plan_->members.size(); ++i) {
    if (later.members[i].since != plan_->members[i].since) retention_.forget(i);
  }
}

absl::Status Session::start(PieceRequest piece, absl::Duration now, Actions& actions) {
  if (!failure_.ok()) {
    actions.done.push_back({piece.id, failure_});
    return absl::OkStatus();
  }
  if (plan_ == nullptr) return absl::FailedPreconditionError("a push_pull began before the first plan");
  GLN_RETURN_IF_ERROR(exchange::check_piece(*plan_, piece));
  const uint32_t begin = plan_->first_partition[piece.tensor] + piece.first;
  const uint32_t end = begin + exchange::partitions_of(*plan_, piece);
  for (uint32_t i = begin; i < end; ++i) {
    if (pieces_.is_in_flight(i)) {
      return absl::FailedPreconditionError(absl::StrCat("tensor ", plan_->tensors[piece.tensor].name,
                                                        " is still in flight: wait for its last push_pull first"));
    }
  }
  const uint32_t factor = plan_->push_factor(plan_->tensors[piece.tensor]);
  pieces_.open(std::move(piece), begin, end, begin < end ? plan_->partitions[begin].offset : 0, factor);
  for (uint32_t i = begin; i < end; ++i) {
    waits_.on_start(plan_->partitions[i].owner, now);
    partitions_[i].missing = true;
    queue_.make_ready(i);
  }
  send_pushes(now, actions);
  pieces_.complete(actions.done);
  return absl::OkStatus();
}

void Session::fail(const absl::Status& status, Actions& actions) {
  if (!failure_.ok()) return;
  failure_ = status;
  pieces_.fail(status, actions.done);
  queue_.clear();
  for (uint32_t i = 0; i < acks_.owners(); ++i) acks_.take(i);
  waits_.clear();
}

void Session::send_pushes(absl::Duration now, Actions& actions) {
  while (!GLN_INJECT("session: pushes wait for the next tick")) {
    const std::optional<uint32_t> partition = queue_.next(now);
    if (!partition.has_value()) return;
    push(*partition, now, actions);
  }
}

void Session::push(uint32_t index, absl::Duration now, Actions& actions) {
  const plan::Partition& partition = plan_->partitions[index];
  PartitionState& state = partitions_[index];
  Buffer payload = pieces_.input(index, partition.offset, partition.bytes);
  if (state.pushed) {
    // The owner may have the first copy. The result may then arrive while this frame still waits to be sent, and
    // overwrite an input that is also the output. So this frame carries a copy of the input.
    ++counters_.repeated_pushes;
    Buffer copy = pool_->take(payload.size());
    std::memcpy(copy.bytes().data(), payload.bytes().data(), payload.size());
    payload = std::move(copy);
  } else {
    waits_.on_push(partition.owner, now);
    state.pushed = true;
  }
  counters_.pushed_bytes += payload.size();
  flush_acks(partition.owner, actions);
  wire::Header header = header_of(wire::FrameType::kPush, payload);
  header.data_type = plan_->push_type(plan_->tensors[partition.tensor]);
  header.op = pieces_.op(index);
  header.tensor = partition.tensor;
  header.partition = index - plan_->first_partition[partition.tensor];
  header.step = state.step;
  actions.sends.push_back({partition.owner, header, std::move(payload)});
}

wire::Header Session::header_of(wire::FrameType type, const Buffer& payload) const {
  wire::Header header;
  header.type = type;
  header.job = options_.job;
  header.epoch = plan_->epoch;
  header.sender = options_.worker;
  header.payload_bytes = static_cast<uint32_t>(payload.size());
  return header;
}

void Session::on_connected(uint32_t owner, absl::Duration now, Actions& actions) {
  if (owner >= acks_.owners()) return;
  if (queue_.is_connected(owner)) queue_.disconnect(owner);
  queue_.connect(owner);
  // tell_progress() repeats acknowledgements that the last connection may have lost.
  acks_.take(owner);
  tell_progress(owner, 0, actions);
  send_pushes(now, actions);
  pieces_.complete(actions.done);
}

void Session::on_disconnected(uint32_t owner) {
  if (owner < acks_.owners()) queue_.disconnect(owner);
}

void Session::on_tick(absl::Duration now, Actions& actions) {
  if (plan_ == nullptr) return;
  if (queue_.tick(now)) ++counters_.stalls;
  send_pushes(now, actions);
  if (!acks_.empty()) {
    for (uint32_t i = 0; i < acks_.owners(); ++i) {
      if (queue_.is_connected(i)) flush_acks(i, actions);
    }
  }
  if (release_timer_.tick(pieces_.in_flight(), pieces_.started(), retention_.needed_by_others() > 0, now)) {
    for (uint32_t i = 0; i < acks_.owners(); ++i) {
      if (queue_.is_connected(i)) ask_for_release(i, actions);
    }
  }
  pieces_.complete(actions.done);
}

// Returns whether this worker has acknowledgements for a connected owner. An owner that can't be reached does not
// count: at the end of a job it may have left.
bool Session::owes_acks() const {
  for (uint32_t i = 0; i < acks_.owners(); ++i) {
    if (queue_.is_connected(i) && !acks_.empty(i)) return true;
  }
  return false;
}

bool Session::idle() const {
  if (pieces_.in_flight() > 0) return false;
  if (ending_) return !owes_acks();
  return acks_.empty() && retention_.needed_by_others() == 0;
}

uint64_t Session::step(uint32_t tensor, uint32_t partition) const {
  const uint32_t index = plan_->first_partition[tensor] + partition;
  return index < plan_->first_partition[tensor + 1] ? partitions_[index].step : 0;
}

std::vector<uint32_t> Session::waiting_for() const {
  return waits_.waiting_for([this](uint32_t owner) { return queue_.is_connected(owner); });
}

const Counters& Session::counters() const {
  counters_.retained_bytes = retention_.bytes() + accumulated_.bytes();
  counters_.outstanding_bytes = queue_.outstanding_bytes();
  counters_.window_used_bytes = queue_.window_used_bytes();
  counters_.window_bytes = queue_.window_bytes();
  return counters_;
}

}  // namespace gleaner::session
