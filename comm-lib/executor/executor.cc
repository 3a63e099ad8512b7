#include "comm-lib/executor/executor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/partitioner.h"
#include "common/plan/successor.h"

namespace gleaner::executor {
uint64_t window_bytes(const plan::Plan& plan, uint32_t worker, uint64_t asked, absl::Duration round_trip) {
  return plan::peer_window_bytes(plan, worker, wire::kHeaderBytes, asked, absl::ToDoubleSeconds(round_trip));
}

Executor::Executor(const Options& options, BufferPool* pool, const kernels::Kernels* kernels, trace::Recorder* recorder)
    : options_(options),
      pool_(pool),
      kernels_(kernels),
      machine_(options.job, options.worker, pool, kernels, recorder),
      runs_(options.worker, &schedules_, &machine_, this),
      calls_(options.worker, &machine_, pool) {}

absl::Status Executor::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now, Actions& actions) {
  if (plan_ != nullptr) GLN_RETURN_IF_ERROR(plan::check_successor(*plan, *plan_));
  GLN_RETURN_IF_ERROR(schedules_.apply(*plan, options_.worker));
  plan_ = std::move(plan);
  runs_.apply(plan_);
  machine_.peers().apply(plan_->workers, plan_->epoch);
  set_round_trip(round_trip_);
  if (failure_.ok()) deliver_later_frames(now, actions);
  if (failure_.ok()) machine_.begin_runs(now, actions);
  return absl::OkStatus();
}

void Executor::set_round_trip(absl::Duration round_trip) {
  round_trip_ = round_trip;
  if (plan_ == nullptr) return;
  machine_.peers().set_window(window_bytes(*plan_, options_.worker, options_.window_bytes, round_trip));
  machine_.set_limit(
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
                                      plan_->encoding(tensor), end - begin);
  for (uint32_t i = begin; i < end; ++i) {
    machine_.start(runs_.start(*piece.schedule, i, piece.op, index), now, actions);
  }
  machine_.begin_runs(now, actions);
  return absl::OkStatus();
}

absl::Status Executor::add_group(uint32_t group, std::vector<uint32_t> members) {
  if (plan_ == nullptr) return absl::FailedPreconditionError("a group was made before the first plan");
  return calls_.add_group(group, std::move(members), plan_->workers);
}

absl::Status Executor::start_call(const Call& call, absl::Duration now, Actions& actions) {
  if (!failure_.ok()) {
    actions.done.push_back({call.id, failure_});
    return absl::OkStatus();
  }
  GLN_RETURN_IF_ERROR(calls_.start(call, now, actions));
  machine_.begin_runs(now, actions);
  return absl::OkStatus();
}

void Executor::begin(Run& run) {
  const plan::Partition& partition = plan_->partitions[run.order.position];
  const uint32_t divisor = run.subject.op == ReduceOp::kAverage ? plan_->ranks() : 1;
  run.cursor.begin(pieces_.input(run.piece, partition.offset, partition.bytes), options_.worker, divisor, *pool_,
                   *kernels_);
}

void Executor::take_results(Run& run) {
  run.cursor.write_result(pieces_.output(run.piece, plan_->partitions[run.order.position].offset), *kernels_);
}

void Executor::finish(uint32_t run, Actions& actions) {
  ++counters_.results;
  pieces_.finish_partition(machine_[run].piece, actions.done);
  runs_.end(run);
}

void Executor::on_connected(uint32_t member, absl::Duration, Actions& actions) {
  if (!failure_.ok() || plan_ == nullptr || member >= plan_->workers || member == options_.worker) return;
  machine_.on_connected(member, actions);
}

void Executor::on_disconnected(uint32_t member) {
  if (plan_ == nullptr || member >= plan_->workers || member == options_.worker) return;
  machine_.peers().on_disconnected(member);
}

void Executor::on_tick(absl::Duration now, Actions& actions) {
  if (!failure_.ok()) return;
  machine_.on_tick(now, actions);
}

void Executor::fail(const absl::Status& status, Actions& actions) {
  if (!failure_.ok()) return;
  failure_ = status;
  pieces_.fail(status, actions.done);
  runs_.clear();
  calls_.fail(status, actions);
  machine_.clear();
  later_frames_.clear();
}

uint64_t Executor::step(uint32_t tensor, uint32_t partition) const {
  const uint32_t index = plan_->first_partition[tensor] + partition;
  if (index >= plan_->first_partition[tensor + 1]) return 0;
  return runs_.steps(index);
}

void Executor::set_ending(std::span<const uint32_t> left) {
  for (const uint32_t worker : left) {
    if (plan_ != nullptr && worker < plan_->workers) machine_.peers().on_left(worker);
  }
}

bool Executor::idle() const { return pieces_.in_flight() == 0 && calls_.in_flight() == 0 && machine_.peers().idle(); }

std::vector<uint32_t> Executor::waiting_for() const {
  const bool waits = pieces_.in_flight() > 0 || calls_.in_flight() > 0;
  return waits ? machine_.peers().waiting_for() : std::vector<uint32_t>();
}

const Counters& Executor::counters() const {
  counters_.slices = machine_.peers().counters().sent;
  counters_.slice_bytes = machine_.peers().counters().sent_bytes;
  counters_.repeated_slices = machine_.peers().counters().repeated;
  counters_.unconfirmed_bytes = machine_.peers().unconfirmed_bytes();
  counters_.window_bytes = machine_.peers().window_bytes();
  return counters_;
}

}  // namespace gleaner::executor
