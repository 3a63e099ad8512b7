#include "comm-lib/collective/executor.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"

namespace gleaner::collective {
namespace {

constexpr absl::Duration kWindowTime = absl::Milliseconds(10);

}  // namespace

uint64_t window_bytes(const plan::Plan& plan, uint32_t worker, uint64_t asked, absl::Duration round_trip) {
  if (asked > 0) return asked;
  uint64_t largest = 0;
  for (const plan::Partition& partition : plan.partitions) {
    if (plan.tensors[partition.tensor].schedule.has_value())
      largest = std::max<uint64_t>(largest, plan.push_bytes(partition));
  }
  const double link = plan.members[worker].bits_per_second / 8 * absl::ToDoubleSeconds(kWindowTime + round_trip);
  return std::max(2 * (largest + wire::kHeaderBytes), static_cast<uint64_t>(link));
}

Executor::Executor(const Options& options, BufferPool* pool, const kernels::Kernels* kernels)
    : options_(options), pool_(pool), kernels_(kernels), peers_(options.job, options.worker, pool) {}

absl::Status Executor::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  if (plan_ != nullptr) GLN_RETURN_IF_ERROR(plan::check_successor(*plan, *plan_));
  GLN_RETURN_IF_ERROR(schedules_.apply(*plan, options_.worker));
  plan_ = std::move(plan);
  partitions_.resize(plan_->partitions.size());
  peers_.apply(plan_->workers, plan_->epoch);
  set_round_trip(round_trip_);
  if (failure_.ok()) deliver_later_slices(now, actions);
  return absl::OkStatus();
}

void Executor::set_round_trip(absl::Duration round_trip) {
  round_trip_ = round_trip;
  if (plan_ == nullptr) return;
  peers_.set_window(window_bytes(*plan_, options_.worker, options_.window_bytes, round_trip));
}

absl::Status Executor::check_start(const PieceRequest& piece, uint32_t begin, uint32_t end, Actions& actions) const {
  const plan::Tensor& tensor = plan_->tensors[piece.tensor];
  if (!tensor.schedule.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, " has no schedule: owners sum it"));
  }
  for (uint32_t i = begin; i < end; ++i) {
    const PartitionState& state = partitions_[i];
    if (is_in_flight(state)) {
      return absl::FailedPreconditionError(
          absl::StrCat("tensor ", tensor.name, " is still in flight: wait for its last push_pull first"));
    }
    if (state.run == kNone || runs_[state.run].op == piece.op) continue;
    absl::Status status = absl::InvalidArgumentError(
        absl::StrCat(plan_->member_name(options_.worker), " asks for op ", name_of(piece.op), " of tensor ",
                     tensor.name, " step ", state.step, ", but ", plan_->member_name(runs_[state.run].named_by),
                     " for op ", name_of(runs_[state.run].op), "; all ranks must use the same op"));
    actions.refused.Update(status);
    return status;
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
  const uint64_t offset = plan_->partitions[begin].offset;
  const uint32_t factor = plan_->push_factor(plan_->tensors[piece.tensor]);
  const uint32_t index = pieces_.open(piece.id, piece.output, offset, end - begin);
  for (uint32_t i = begin; i < end; ++i) {
    const plan::Partition& partition = plan_->partitions[i];
    Buffer work = pool_->take(plan_->push_bytes(partition));
    std::memcpy(work.bytes().data(), piece.input.bytes().data() + (partition.offset - offset) * factor, work.size());
    PartitionState& state = partitions_[i];
    if (state.run == kNone) state.run = open_run(i, piece.op, options_.worker);
    runs_[state.run].piece = index;
    runs_[state.run].cursor.begin(std::move(work));
    advance(state.run, now, actions);
  }
  return absl::OkStatus();
}

const Program& Executor::program_of(uint32_t partition) const {
  return schedules_[*plan_->tensors[plan_->partitions[partition].tensor].schedule];
}

uint32_t Executor::open_run(uint32_t partition, ReduceOp op, uint32_t named_by) {
  const plan::Tensor& tensor = plan_->tensors[plan_->partitions[partition].tensor];
  const uint64_t elements = plan_->partitions[partition].bytes / size_of(tensor.type);
  const uint32_t index = runs_.take();
  Run& run = runs_[index];
  run.partition = partition;
  run.op = op;
  run.named_by = named_by;
  run.waits_for = kNone;
  run.cursor.open(&program_of(partition), elements, plan_->push_type(tensor), &arrived_);
  return index;
}

bool Executor::is_in_flight(const PartitionState& state) const {
  return state.run != kNone && runs_[state.run].cursor.has_begun();
}

void Executor::advance(uint32_t index, absl::Duration now, Actions& actions) {
  Run& run = runs_[index];
  const plan::Partition& partition = plan_->partitions[run.partition];
  const plan::Tensor& tensor = plan_->tensors[partition.tensor];
  while (true) {
    Cursor::Outcome outcome = run.cursor.advance(*kernels_);
    switch (outcome.event) {
      case Cursor::Event::kSend:
        peers_.send(outcome.peer,
                    {.tensor = partition.tensor,
                     .partition = run.partition - plan_->first_partition[partition.tensor],
                     .step = partitions_[run.partition].step,
                     .type = plan_->push_type(tensor),
                     .op = run.op,
                     .priority = tensor.priority,
                     .position = run.partition,
                     .payload = std::move(outcome.slice)},
                    now, actions);
        break;
      case Cursor::Event::kBlocked:
        run.waits_for = outcome.peer;
        peers_.block(outcome.peer, now);
        return;
      case Cursor::Event::kEnded:
        finish(index, actions);
        return;
    }
  }
}

// Writes the sum of a run whose program has ended, and makes the next run the current one.
void Executor::finish(uint32_t index, Actions& actions) {
  const Run& run = runs_[index];
  const plan::Partition& partition = plan_->partitions[run.partition];
  const plan::Tensor& tensor = plan_->tensors[partition.tensor];
  const std::array<const std::byte*, 1> sums = {run.cursor.work().bytes().data()};
  kernels_->sum(plan_->push_type(tensor), tensor.type, sums, pieces_.output(run.piece, partition.offset),
                run.cursor.elements(), run.op == ReduceOp::kAverage ? plan_->ranks() : 1);
  PartitionState& state = partitions_[run.partition];
  ++state.step;
  state.run = std::exchange(state.next, kNone);
  ++counters_.results;
  pieces_.finish_partition(run.piece, actions.done);
  runs_.give_back(index);
}

void Executor::on_connected(uint32_t member, absl::Duration, Actions& actions) {
  if (!failure_.ok() || plan_ == nullptr || member >= plan_->workers || member == options_.worker) return;
  peers_.on_connected(member, actions);
}

void Executor::on_disconnected(uint32_t member) {
  if (plan_ == nullptr || member >= plan_->workers || member == options_.worker) return;
  peers_.on_disconnected(member);
}

void Executor::on_tick(absl::Duration, Actions& actions) {
  if (failure_.ok()) peers_.tick(actions);
}

void Executor::fail(const absl::Status& status, Actions& actions) {
  if (!failure_.ok()) return;
  failure_ = status;
  pieces_.fail(status, actions.done);
  for (PartitionState& state : partitions_) {
    if (state.run != kNone) runs_.give_back(std::exchange(state.run, kNone));
    if (state.next != kNone) runs_.give_back(std::exchange(state.next, kNone));
  }
  later_slices_.clear();
  peers_.clear();
}

uint64_t Executor::step(uint32_t tensor, uint32_t partition) const {
  const uint32_t index = plan_->first_partition[tensor] + partition;
  return index < plan_->first_partition[tensor + 1] ? partitions_[index].step : 0;
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
  counters_.pushed_bytes = peers_.counters().sent_bytes;
  counters_.pushed_slices = peers_.counters().sent;
  counters_.repeated_pushes = peers_.counters().repeated;
  counters_.outstanding_bytes = peers_.unconfirmed_bytes();
  counters_.window_used_bytes = counters_.outstanding_bytes;
  counters_.window_bytes = peers_.window_bytes();
  return counters_;
}

}  // namespace gleaner::collective
