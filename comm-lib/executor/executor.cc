#include "comm-lib/executor/executor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/partitioner.h"
#include "common/plan/successor.h"

namespace gleaner::executor {
namespace {

constexpr absl::Duration kWindowTime = absl::Milliseconds(10);

// Returns the slice that a run sends by `operation`.
OutgoingSlice make_slice(const plan::Plan& plan, const Run& run, const Program::Operation& operation, Buffer payload) {
  const uint32_t id = plan.partitions[run.partition].tensor;
  const plan::Tensor& tensor = plan.tensors[id];
  return {.tensor = id,
          .partition = run.partition - plan.first_partition[id],
          .schedule = run.schedule,
          .step = run.step,
          .schedule_step = operation.step,
          .chunk = operation.slice.first,
          .type = run.cursor.type_of(operation),
          .op = run.op,
          .priority = tensor.priority,
          .position = run.partition,
          .payload = std::move(payload)};
}

}  // namespace

uint64_t window_bytes(const plan::Plan& plan, uint32_t worker, uint64_t asked, absl::Duration round_trip) {
  if (asked > 0) return asked;
  uint64_t largest = 0;
  for (const plan::Partition& partition : plan.partitions) {
    if (plan.tensors[partition.tensor].schedule.has_value())
      largest = std::max<uint64_t>(largest, plan.partial_bytes(partition));
  }
  const double link = plan.members[worker].bits_per_second / 8 * absl::ToDoubleSeconds(kWindowTime + round_trip);
  return std::max(2 * (largest + wire::kHeaderBytes), static_cast<uint64_t>(link));
}

Executor::Executor(const Options& options, BufferPool* pool, const kernels::Kernels* kernels, trace::Recorder* recorder)
    : options_(options),
      pool_(pool),
      kernels_(kernels),
      recorder_(recorder),
      runs_(options.worker, &schedules_),
      peers_(options.job, options.worker, pool, &recorder_) {}

absl::Status Executor::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  if (plan_ != nullptr) GLN_RETURN_IF_ERROR(plan::check_successor(*plan, *plan_));
  GLN_RETURN_IF_ERROR(schedules_.apply(*plan, options_.worker));
  plan_ = std::move(plan);
  runs_.apply(plan_);
  peers_.apply(plan_->workers, plan_->epoch);
  set_round_trip(round_trip_);
  if (failure_.ok()) deliver_later_frames(now, actions);
  if (failure_.ok()) begin_runs(now, actions);
  return absl::OkStatus();
}

void Executor::set_round_trip(absl::Duration round_trip) {
  round_trip_ = round_trip;
  if (plan_ == nullptr) return;
  peers_.set_window(window_bytes(*plan_, options_.worker, options_.window_bytes, round_trip));
  starts_.set_limit(
      plan::schedule_window_bytes(*plan_, options_.worker, options_.window_bytes, absl::ToDoubleSeconds(round_trip)));
}

absl::Status Executor::check_start(const PieceRequest& piece, uint32_t begin, uint32_t end, Actions& actions) const {
  const plan::Tensor& tensor = plan_->tensors[piece.tensor];
  if (!piece.schedule.has_value() || !schedules_.sums(*piece.schedule, piece.tensor)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", tensor.name, " has no schedule in the plans up to epoch ", plan_->epoch));
  }
  for (uint32_t i = begin; i < end; ++i) {
    GLN_RETURN_IF_ERROR(runs_.check_start(*piece.schedule, i, piece.op, actions.refused));
  }
  return absl::OkStatus();
}

absl::Status Executor::start(PieceRequest piece, absl::Duration now, Actions& actions) {
  if (!failure_.ok()) {
    actions.done.push_back({piece.id, failure_});
    return absl::OkStatus();
  }
  if (plan_ == nullptr) return absl::FailedPreconditionError("a push_pull began before the first plan");
  GLN_RETURN_IF_ERROR(exchange::check_piece(*plan_, piece));
  const uint32_t begin = plan_->first_partition[piece.tensor] + piece.first;
  const uint32_t end = begin + exchange::partitions_of(*plan_, piece);
  GLN_RETURN_IF_ERROR(check_start(piece, begin, end, actions));
  if (begin == end) {
    actions.done.push_back({piece.id, absl::OkStatus()});
    return absl::OkStatus();
  }
  const plan::Tensor& tensor = plan_->tensors[piece.tensor];
  const uint32_t index = pieces_.open(piece.id, std::move(piece.input), piece.output, plan_->partitions[begin].offset,
                                      plan_->push_factor(tensor), end - begin);
  for (uint32_t i = begin; i < end; ++i) runs_.start(*piece.schedule, i, piece.op, index);
  starts_.push({tensor.priority, *piece.schedule, begin, end});
  for (uint32_t i = begin; i < end; ++i) admit_if_wanted(runs_.present(*piece.schedule, i), now, actions);
  begin_runs(now, actions);
  return absl::OkStatus();
}

// Begins the runs for which there is room.
void Executor::begin_runs(absl::Duration now, Actions& actions) {
  while (!starts_.empty()) {
    const StartQueue::Waiting& waiting = starts_.front();
    const uint32_t run = runs_.present(waiting.schedule, waiting.next);
    const bool has_begun = run == kNone || runs_[run].piece == kNone || runs_[run].cursor.has_begun();
    if (!has_begun && !starts_.has_room(plan_->partial_bytes(plan_->partitions[waiting.next]))) return;
    starts_.pop();
    if (!has_begun) begin(run, now, actions);
  }
}

// Begins a run that a peer has begun, if its piece has been started.
void Executor::admit_if_wanted(uint32_t index, absl::Duration now, Actions& actions) {
  if (index == kNone) return;
  const Run& run = runs_[index];
  if (!run.is_wanted || run.piece == kNone || run.cursor.has_begun()) return;
  if (GLN_MUTATION("a partition that a peer has begun waits for its turn")) return;
  if (!starts_.has_room(plan_->partial_bytes(plan_->partitions[run.partition]))) {
    GLN_RARE("executor: a partition begins beyond the limit, since a peer has begun it");
  }
  begin(index, now, actions);
}

void Executor::begin(uint32_t index, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  const plan::Partition& partition = plan_->partitions[run.partition];
  starts_.begin(plan_->partial_bytes(partition));
  const uint32_t divisor = run.op == ReduceOp::kAverage ? plan_->ranks() : 1;
  run.cursor.begin(pieces_.input(run.piece, partition.offset, partition.bytes), options_.worker, divisor, *pool_,
                   *kernels_);
  recorder_.on_begun(*plan_, run);
  advance(index, now, actions);
}

void Executor::advance(uint32_t index, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  while (true) {
    Cursor::Outcome outcome = run.cursor.advance(*kernels_);
    switch (outcome.event) {
      case Cursor::Event::kSend:
        peers_.send(outcome.operation->peer, make_slice(*plan_, run, *outcome.operation, std::move(outcome.slice)), now,
                    actions);
        break;
      case Cursor::Event::kReceived:
        recorder_.on_received(*plan_, run, *outcome.operation);
        break;
      case Cursor::Event::kBlocked:
        run.waits_for = outcome.operation->peer;
        run.ticks_blocked = 0;
        peers_.block(run.waits_for, now);
        return;
      case Cursor::Event::kEnded:
        finish(index, actions);
        return;
    }
  }
}

// Writes the result of a run whose program has ended, and ends the run.
void Executor::finish(uint32_t index, Actions& actions) {
  Run& run = runs_[index];
  const plan::Partition& partition = plan_->partitions[run.partition];
  run.cursor.write_result(pieces_.output(run.piece, partition.offset), *kernels_);
  recorder_.on_ended(*plan_, run);
  ++counters_.results;
  starts_.end(plan_->partial_bytes(partition));
  pieces_.finish_partition(run.piece, actions.done);
  runs_.end(index);
}

void Executor::on_connected(uint32_t member, absl::Duration, Actions& actions) {
  if (!failure_.ok() || plan_ == nullptr || member >= plan_->workers || member == options_.worker) return;
  peers_.on_connected(member, actions);
  // A kAwait may have been lost with the last connection.
  for (uint32_t i = 0; i < runs_.size(); ++i) {
    if (runs_[i].waits_for == member) runs_[i].ticks_blocked = 0;
  }
}

void Executor::on_disconnected(uint32_t member) {
  if (plan_ == nullptr || member >= plan_->workers || member == options_.worker) return;
  peers_.on_disconnected(member);
}

void Executor::on_tick(absl::Duration now, Actions& actions) {
  if (!failure_.ok()) return;
  begin_runs(now, actions);
  ask_peers(actions);
  peers_.tick(actions);
}

void Executor::fail(const absl::Status& status, Actions& actions) {
  if (!failure_.ok()) return;
  failure_ = status;
  pieces_.fail(status, actions.done);
  runs_.clear();
  starts_.clear();
  later_frames_.clear();
  peers_.clear();
}

uint64_t Executor::step(uint32_t tensor, uint32_t partition) const {
  const uint32_t index = plan_->first_partition[tensor] + partition;
  if (index >= plan_->first_partition[tensor + 1]) return 0;
  return runs_.steps(index);
}

void Executor::set_ending(std::span<const uint32_t> left) {
  for (const uint32_t worker : left) {
    if (plan_ != nullptr && worker < plan_->workers) peers_.on_left(worker);
  }
}

bool Executor::idle() const { return pieces_.in_flight() == 0 && peers_.idle(); }

std::vector<uint32_t> Executor::waiting_for() const {
  return pieces_.in_flight() == 0 ? std::vector<uint32_t>() : peers_.waiting_for();
}

const Counters& Executor::counters() const {
  counters_.slices = peers_.counters().sent;
  counters_.slice_bytes = peers_.counters().sent_bytes;
  counters_.repeated_slices = peers_.counters().repeated;
  counters_.unconfirmed_bytes = peers_.unconfirmed_bytes();
  counters_.window_bytes = peers_.window_bytes();
  return counters_;
}

}  // namespace gleaner::executor
