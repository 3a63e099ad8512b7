#include "comm-lib/session/contributions.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "comm-lib/session/checks.h"
#include "common/base/faults.h"
#include "common/plan/successor.h"

namespace gleaner::session {

Contributions::Contributions(const Identity& identity, SendQueue queue, BufferPool* pool)
    : identity_(identity), pool_(pool), queue_(std::move(queue)) {}

uint32_t Contributions::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now) {
  waits_.resize(plan->members.size());
  const uint32_t moved = plan_ == nullptr ? 0 : move(*plan, now);
  std::vector<bool> owns(plan->members.size());
  for (const plan::Partition& partition : plan->partitions) owns[partition.owner] = true;
  waits_.on_plan(plan->workers, owns, now);
  states_.resize(plan->partitions.size());
  pieces_.resize(plan->partitions.size());
  queue_.apply(plan.get());
  plan_ = std::move(plan);
  return moved;
}

// Records the partitions that move with `later`. SendQueue::apply() makes them ready again.
uint32_t Contributions::move(const plan::Plan& later, absl::Duration now) {
  uint32_t moved = 0;
  for (uint32_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    if (!state.missing || !plan::has_moved(later.partitions[i], plan_->epoch)) continue;
    ++moved;
    waits_.on_move(plan_->partitions[i].owner, later.partitions[i].owner, state.pushed, now);
    if (state.moved) GLN_RARE("session: a partition moves twice in a step");
    state.moved = true;
  }
  return moved;
}

absl::Status Contributions::start(PieceRequest piece, absl::Duration now) {
  const uint32_t begin = plan_->first_partition[piece.tensor] + piece.first;
  const uint32_t end = begin + exchange::partitions_of(*plan_, piece);
  for (uint32_t i = begin; i < end; ++i) {
    if (pieces_.is_in_flight(i)) {
      return absl::FailedPreconditionError(absl::StrCat("tensor ", plan_->tensors[piece.tensor].name,
                                                        " is still in flight: wait for its last push_pull first"));
    }
  }
  const plan::Encoding encoding = plan_->encoding(plan_->tensors[piece.tensor]);
  pieces_.open(std::move(piece), begin, end, begin < end ? plan_->partitions[begin].offset : 0, encoding);
  for (uint32_t i = begin; i < end; ++i) {
    waits_.on_start(plan_->partitions[i].owner, now);
    states_[i].missing = true;
    queue_.make_ready(i);
  }
  return absl::OkStatus();
}

void Contributions::connect(uint32_t owner) {
  if (queue_.is_connected(owner)) queue_.disconnect(owner);
  queue_.connect(owner);
}

void Contributions::disconnect(uint32_t owner) { queue_.disconnect(owner); }

Contributions::Push Contributions::push(uint32_t index, uint64_t step, absl::Duration now) {
  const plan::Partition& partition = plan_->partitions[index];
  Buffer payload = pieces_.input(index, partition.offset, partition.bytes);
  const bool is_repeated = std::exchange(states_[index].pushed, true);
  if (is_repeated) {
    Buffer copy = pool_->take(payload.size());
    std::memcpy(copy.bytes().data(), payload.bytes().data(), payload.size());
    payload = std::move(copy);
  } else {
    waits_.on_push(partition.owner, now);
  }
  wire::Header header = make_header(identity_, *plan_, wire::FrameType::kPush, key_of(*plan_, index, step), payload);
  header.data_type = plan_->encoding(partition).contribution;
  header.op = pieces_.op(index);
  return {{partition.owner, header, std::move(payload)}, is_repeated};
}

absl::Status Contributions::check_answer(uint32_t index, uint64_t step, const wire::Header& header) const {
  const State& state = states_[index];
  const bool awaited = state.missing && state.pushed;
  if (!awaited || header.step != step) {
    return absl::FailedPreconditionError(absl::StrCat(plan_->member_name(header.sender), " sent ",
                                                      describe(*plan_, header),
                                                      ", but this worker has not pushed its contribution"));
  }
  const ReduceOp op = pieces_.op(index);
  const DataType type = plan_->tensors[header.tensor].type;
  const bool is_result = header.type == wire::FrameType::kResult;
  if (is_result && (header.data_type != type || header.op != op)) {
    return absl::InvalidArgumentError(absl::StrCat(
        plan_->member_name(header.sender), " sent ", describe(*plan_, header), " as ", name_of(header.data_type),
        " op ", static_cast<int>(header.op), ", expected ", name_of(type), " op ", static_cast<int>(op)));
  }
  return absl::OkStatus();
}

void Contributions::take_result(uint32_t index, const Buffer& result, absl::Duration now) {
  const plan::Partition& partition = plan_->partitions[index];
  const bool is_delayed = states_[index].moved && pieces_.is_in_place(index) &&
                          !GLN_MUTATION("results go over input that is still being sent");
  if (is_delayed) GLN_RARE("session: a result waits for frames to an earlier owner");
  pieces_.add_result(index, partition.offset, partition.bytes, result, is_delayed);
  states_[index] = {};
  queue_.finish(index, now);
  waits_.on_result(partition.owner, now);
}

bool Contributions::defer(uint32_t index, absl::Duration now) {
  if (!queue_.defer(index, now)) return false;
  waits_.on_defer(plan_->partitions[index].owner, now);
  return true;
}

void Contributions::fail(const absl::Status& status, std::vector<Done>& done) {
  pieces_.fail(status, done);
  queue_.clear();
  waits_.clear();
}

}  // namespace gleaner::session
