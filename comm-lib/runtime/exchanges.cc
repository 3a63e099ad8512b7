#include "comm-lib/runtime/exchanges.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::runtime {

void Exchanges::add(SummedBy kind, std::unique_ptr<exchange::Exchange> exchange) {
  all_.push_back(exchange.get());
  by_kind_[static_cast<size_t>(kind)] = std::move(exchange);
}

absl::Status Exchanges::prepare(const plan::Plan& plan) {
  for (exchange::Exchange* const each : all_) GLN_RETURN_IF_ERROR(each->prepare(plan));
  if (at(SummedBy::kWorkers) != nullptr) return absl::OkStatus();
  for (const plan::Tensor& tensor : plan.tensors) {
    if (!tensor.schedule.has_value()) continue;
    return absl::UnimplementedError(absl::StrCat(
        "tensor ", tensor.name, " has a schedule (", plan.schedules[*tensor.schedule].algorithm,
        "), and this library executes no schedules; make a plan in which owners sum the tensor's partitions"));
  }
  return absl::OkStatus();
}

absl::Status Exchanges::apply(std::shared_ptr<const plan::Plan> plan, absl::Duration now) {
  for (exchange::Exchange* const each : all_) GLN_RETURN_IF_ERROR(each->apply(plan, now, actions_));
  plan_ = std::move(plan);
  return absl::OkStatus();
}

exchange::Exchange& Exchanges::of(uint32_t tensor) const {
  const bool is_scheduled = tensor < plan_->tensors.size() && plan_->tensors[tensor].schedule.has_value();
  return *at(is_scheduled ? SummedBy::kWorkers : SummedBy::kOwners);
}

void Exchanges::start(exchange::PieceRequest piece, absl::Duration now) {
  const uint64_t id = piece.id;
  const absl::Status status = of(piece.tensor).start(std::move(piece), now, actions_);
  if (!status.ok()) actions_.done.push_back({id, status});
}

bool Exchanges::takes_accepted(wire::FrameType type) const {
  const bool is_of_schedule = type == wire::FrameType::kSlice || type == wire::FrameType::kArrived;
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
  for (exchange::Exchange* const each : all_) each->fail(status, actions_);
}

bool Exchanges::idle() const {
  return std::ranges::all_of(all_, [](const exchange::Exchange* each) { return each->idle(); });
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

}  // namespace gleaner::runtime
