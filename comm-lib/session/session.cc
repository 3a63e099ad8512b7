#include "comm-lib/session/session.h"

#include <optional>
#include <utility>

#include "comm-lib/session/checks.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"

namespace gleaner::session {

Session::Session(const Options& options, BufferPool* pool)
    : identity_{options.job, options.worker},
      contributions_(identity_,
                     SendQueue(options.window_bytes, options.worker, options.stall_after, options.defer_retry), pool),
      results_(identity_, pool),
      acks_(identity_, pool) {}

absl::Status Session::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  const uint32_t before = plan_ == nullptr ? 0 : plan_->epoch;
  if (plan_ != nullptr) GLN_RETURN_IF_ERROR(plan::check_successor(*plan, *plan_));
  // Acknowledgements belong to the plan under which they were gathered. on_connected() repeats them to owners that are
  // not connected.
  acks_.flush_connected([this](uint32_t owner) { return contributions_.is_connected(owner); }, actions);
  acks_.drop_all();
  counters_.moved += contributions_.apply(plan, now);
  results_.apply(plan);
  acks_.apply(*plan);
  plan_ = std::move(plan);
  if (!failure_.ok()) return absl::OkStatus();
  for (uint32_t i = 0; exists(i); ++i) {
    if (contributions_.is_connected(i)) tell_progress(i, before, actions);
  }
  send_pushes(now, actions);
  return absl::OkStatus();
}

absl::Status Session::start(PieceRequest piece, absl::Duration now, Actions& actions) {
  if (!failure_.ok()) {
    actions.done.push_back({piece.id, failure_});
    return absl::OkStatus();
  }
  if (plan_ == nullptr) return absl::FailedPreconditionError("a push_pull began before the first plan");
  GLN_RETURN_IF_ERROR(exchange::check_piece(*plan_, piece));
  GLN_RETURN_IF_ERROR(contributions_.start(std::move(piece), now));
  send_pushes(now, actions);
  contributions_.complete(actions.done);
  return absl::OkStatus();
}

void Session::fail(const absl::Status& status, Actions& actions) {
  if (!failure_.ok()) return;
  failure_ = status;
  contributions_.fail(status, actions.done);
  acks_.drop_all();
}

void Session::send_pushes(absl::Duration now, Actions& actions) {
  while (!GLN_INJECT("session: pushes wait for the next tick")) {
    const std::optional<uint32_t> partition = contributions_.next(now);
    if (!partition.has_value()) return;
    Contributions::Push push = contributions_.push(*partition, results_.step(*partition), now);
    counters_.pushed_bytes += push.send.payload.size();
    counters_.repeated_pushes += push.is_repeated ? 1 : 0;
    acks_.flush(push.send.member, actions);
    actions.sends.push_back(std::move(push.send));
  }
}

// Tells the owner the progress of this worker with all partitions that came to the owner after the plan of epoch
// `since`. Leaves out new tensors, since every worker is at step 0 of these, and tensors of groups without this worker.
void Session::tell_progress(uint32_t owner, uint32_t since, Actions& actions) {
  for (const uint32_t index : contributions_.owned_by(owner)) {
    const plan::Partition& partition = plan_->partitions[index];
    const plan::Tensor& tensor = plan_->tensors[partition.tensor];
    const bool is_new = partition.since == tensor.since && results_.step(index) == 0;
    const bool contributes =
        tensor.has(identity_.worker) || GLN_MUTATION("workers report progress with tensors of other groups");
    if (!is_new && contributes && plan::has_moved(partition, since))
      acks_.add(owner, results_.progress(index), actions);
  }
  acks_.flush(owner, actions);
}

void Session::on_connected(uint32_t owner, absl::Duration now, Actions& actions) {
  if (!exists(owner)) return;
  contributions_.connect(owner);
  // tell_progress() repeats acknowledgements that the last connection may have lost.
  acks_.drop(owner);
  tell_progress(owner, 0, actions);
  send_pushes(now, actions);
  contributions_.complete(actions.done);
}

void Session::on_disconnected(uint32_t owner) {
  if (exists(owner)) contributions_.disconnect(owner);
}

absl::Status Session::on_frame(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                               Actions& actions) {
  if (!failure_.ok()) return absl::OkStatus();
  if (plan_ == nullptr) return absl::FailedPreconditionError("a frame arrived before the first plan");
  GLN_RETURN_IF_ERROR(check_peer(*plan_, identity_.job, owner, header));
  if (header.type == wire::FrameType::kCommitted) return absl::OkStatus();  // member::Membership handles it
  if (header.type == wire::FrameType::kRelease) return results_.on_release(owner, header, payload);
  if (header.type == wire::FrameType::kRefuse) {
    const MutableBytes text = payload.bytes();
    actions.refused.Update(
        absl::InvalidArgumentError(absl::string_view(reinterpret_cast<const char*>(text.data()), text.size())));
    return absl::OkStatus();
  }
  GLN_RETURN_IF_ERROR(on_answer(owner, header, std::move(payload), now, actions));
  send_pushes(now, actions);
  contributions_.complete(actions.done);
  return absl::OkStatus();
}

// Handles a frame about a partition: a kResult, kDefer or kFetch.
absl::Status Session::on_answer(uint32_t owner, const wire::Header& header, Buffer payload, absl::Duration now,
                                Actions& actions) {
  GLN_RETURN_IF_ERROR(check_exists(*plan_, owner, header));
  const uint32_t index = plan_->index_of(header.tensor, header.partition);
  // The frame belongs to an epoch in which another owner had the partition. There is no upper limit of the epoch,
  // because an owner may follow a later plan than this worker.
  if (plan::has_moved(plan_->partitions[index], header.epoch)) {
    GLN_RARE("session: an earlier owner's answer is dropped");
    return absl::OkStatus();
  }
  GLN_RETURN_IF_ERROR(check_frame(*plan_, owner, header, payload));
  if (header.type == wire::FrameType::kResult) {
    return on_result(owner, index, header, std::move(payload), now, actions);
  }
  if (header.type == wire::FrameType::kDefer) return on_defer(index, header, now);
  on_fetch(owner, index, header, actions);
  return absl::OkStatus();
}

absl::Status Session::on_result(uint32_t owner, uint32_t index, const wire::Header& header, Buffer payload,
                                absl::Duration now, Actions& actions) {
  const uint64_t step = results_.step(index);
  const bool is_late = header.step < step;
  if (!is_late) {
    GLN_RETURN_IF_ERROR(contributions_.check_answer(index, step, header));
    GLN_RETURN_IF_ERROR(results_.check(index, header, payload));
  }
  results_.release(owner, header);
  if (is_late) {
    ++counters_.duplicate_results;
  } else {
    ++counters_.results;
    actions.has_progressed = true;
    contributions_.take_result(index, payload, now);
    results_.take(index, header, std::move(payload));
  }
  if (!results_.accumulates(index)) acks_.add(owner, results_.progress(index), actions);
  return absl::OkStatus();
}

absl::Status Session::on_defer(uint32_t index, const wire::Header& header, absl::Duration now) {
  const uint64_t step = results_.step(index);
  if (header.step < step) return absl::OkStatus();
  GLN_RETURN_IF_ERROR(contributions_.check_answer(index, step, header));
  if (contributions_.defer(index, now)) ++counters_.deferred;
  return absl::OkStatus();
}

void Session::on_fetch(uint32_t owner, uint32_t index, const wire::Header& header, Actions& actions) {
  std::optional<exchange::Send> handed = results_.hand_on(owner, index, header);
  if (!handed.has_value()) return;
  ++counters_.handed;
  actions.sends.push_back(*std::move(handed));
}

void Session::on_tick(absl::Duration now, Actions& actions) {
  if (plan_ == nullptr) return;
  if (contributions_.tick(now)) ++counters_.stalls;
  send_pushes(now, actions);
  acks_.flush_connected([this](uint32_t owner) { return contributions_.is_connected(owner); }, actions);
  const InFlightPieces& pieces = contributions_.pieces();
  if (release_timer_.tick(pieces.in_flight(), pieces.started(), results_.needed_by_others() > 0, now)) {
    for (uint32_t i = 0; exists(i); ++i) {
      if (!contributions_.is_connected(i)) continue;
      auto question = results_.ask_for_release(i, contributions_.owned_by(i));
      if (question.has_value()) actions.sends.push_back(*std::move(question));
    }
  }
  contributions_.complete(actions.done);
}

// An owner that can't be reached gets no acknowledgements at the end of a job: it may have left.
bool Session::idle() const {
  if (contributions_.pieces().in_flight() > 0) return false;
  if (ending_) return acks_.empty_for([this](uint32_t owner) { return contributions_.is_connected(owner); });
  return acks_.empty() && results_.needed_by_others() == 0;
}

uint64_t Session::step(uint32_t tensor, uint32_t partition) const {
  const uint32_t index = plan_->first_partition[tensor] + partition;
  return index < plan_->first_partition[tensor + 1] ? results_.step(index) : 0;
}

std::vector<uint32_t> Session::waiting_for() const {
  return contributions_.waits().waiting_for([this](uint32_t owner) { return contributions_.is_connected(owner); });
}

const Counters& Session::counters() const {
  counters_.retained_bytes = results_.bytes();
  counters_.outstanding_bytes = contributions_.queue().outstanding_bytes();
  counters_.window_used_bytes = contributions_.queue().window_used_bytes();
  counters_.window_bytes = contributions_.queue().window_bytes();
  return counters_;
}

}  // namespace gleaner::session
