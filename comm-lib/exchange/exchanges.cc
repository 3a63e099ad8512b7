#include "comm-lib/exchange/exchanges.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"

namespace gleaner::exchange {

void Exchanges::add(SummedBy kind, std::unique_ptr<exchange::Exchange> exchange) {
  all_.push_back(exchange.get());
  by_kind_[static_cast<size_t>(kind)] = std::move(exchange);
}

absl::Status Exchanges::prepare(const plan::Plan& plan, absl::Duration now) {
  // The plan that was prepared before will never come into force, even if this one is refused.
  strategies_.forget_prepared();
  absl::Status status = plan_ == nullptr ? absl::OkStatus() : plan::check_successor(plan, *plan_);
  if (status.ok()) status = check_executable(plan);
  for (exchange::Exchange* const each : all_) {
    if (status.ok()) status = each->prepare(plan);
  }
  if (status.ok()) status = strategies_.prepare(plan);
  start_held(now);
  return status;
}

absl::Status Exchanges::check_executable(const plan::Plan& plan) const {
  if (at(SummedBy::kWorkers) != nullptr) return absl::OkStatus();
  for (const plan::Tensor& tensor : plan.tensors) {
    if (!tensor.schedule.has_value()) continue;
    return absl::UnimplementedError(absl::StrCat(
        "tensor ", tensor.name, " has a schedule (", plan.schedules[*tensor.schedule].algorithm,
        "), and this library executes no schedules; make a plan in which owners sum the tensor's partitions"));
  }
  return absl::OkStatus();
}

void Exchanges::withdraw(uint32_t epoch, absl::Duration now) {
  strategies_.withdraw(epoch);
  start_held(now);
}

absl::Status Exchanges::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now) {
  for (exchange::Exchange* const each : all_) GLN_RETURN_IF_ERROR(each->apply(plan, now, actions_));
  strategies_.apply(*plan);
  plan_ = std::move(plan);
  start_held(now);
  return absl::OkStatus();
}

void Exchanges::start(exchange::PieceRequest piece, absl::Duration now) {
  const uint64_t id = piece.id;
  const uint32_t tensor = piece.tensor, first = piece.first, count = piece.count;
  // The exchange refuses a piece that does not exist.
  const bool exists =
      plan_ != nullptr && tensor < plan_->tensors.size() && first <= plan_->partitions_of(tensor).size();
  if (exists) {
    const std::optional<exchange::Strategies::Schedule> schedule = strategies_.find(tensor, first);
    if (!schedule.has_value()) {
      GLN_RARE("worker: a push_pull waits for a change of strategy");
      return held_.push_back(std::move(piece));
    }
    piece.schedule = *schedule;
  }
  exchange::Exchange& chosen = *at(piece.schedule.has_value() ? SummedBy::kWorkers : SummedBy::kOwners);
  if (const absl::Status status = chosen.start(std::move(piece), now, actions_); !status.ok()) {
    actions_.done.push_back({id, status});
  } else if (exists) {
    strategies_.on_begun(tensor, first, count);
  }
}

// Starts the held pieces that may start, in their order. The others are held again.
void Exchanges::start_held(absl::Duration now) {
  starting_.swap(held_);
  for (exchange::PieceRequest& piece : starting_) start(std::move(piece), now);
  starting_.clear();
}

uint64_t Exchanges::step(uint32_t tensor, uint32_t partition) const {
  uint64_t steps = 0;
  for (const exchange::Exchange* const each : all_) steps += each->step(tensor, partition);
  return steps;
}

bool Exchanges::takes_accepted(wire::FrameType type) const {
  const bool is_of_schedule = wire::is_of_schedule(type);
  return is_of_schedule && at(SummedBy::kWorkers) != nullptr;
}

absl::Status Exchanges::on_frame(uint32_t member, const wire::Header& header, Buffer payload, absl::Duration now) {
  return at(SummedBy::kOwners)->on_frame(member, header, std::move(payload), now, actions_);
}

absl::Status Exchanges::on_accepted_frame(uint32_t member, const wire::Header& header, Buffer payload,
                                          absl::Duration now) {
  return at(SummedBy::kWorkers)->on_frame(member, header, std::move(payload), now, actions_);
}

void Exchanges::on_connected(uint32_t member, absl::Duration now) {
  for (exchange::Exchange* const each : all_) each->on_connected(member, now, actions_);
}

void Exchanges::on_disconnected(uint32_t member) {
  for (exchange::Exchange* const each : all_) each->on_disconnected(member);
}

void Exchanges::set_round_trip(absl::Duration round_trip) {
  for (exchange::Exchange* const each : all_) each->set_round_trip(round_trip);
}

void Exchanges::on_tick(absl::Duration now) {
  for (exchange::Exchange* const each : all_) each->on_tick(now, actions_);
}

void Exchanges::set_ending(std::span<const uint32_t> left) {
  for (exchange::Exchange* const each : all_) each->set_ending(left);
}

void Exchanges::fail(const absl::Status& status) {
  strategies_.forget_prepared();
  for (const exchange::PieceRequest& piece : held_) actions_.done.push_back({piece.id, status});
  held_.clear();
  for (exchange::Exchange* const each : all_) each->fail(status, actions_);
}

bool Exchanges::idle() const {
  return held_.empty() && std::ranges::all_of(all_, [](const exchange::Exchange* each) { return each->idle(); });
}

std::vector<uint32_t> Exchanges::waiting_for() const {
  std::vector<uint32_t> members;
  for (const exchange::Exchange* const each : all_) {
    for (const uint32_t member : each->waiting_for()) {
      if (std::ranges::find(members, member) == members.end()) members.push_back(member);
    }
  }
  return members;
}

}  // namespace gleaner::exchange
