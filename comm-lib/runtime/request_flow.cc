#include "comm-lib/runtime/request_flow.h"

#include <optional>
#include <utility>

#include "common/plan/broadcast_name.h"

namespace gleaner::runtime {
namespace {

Meter::Kind kind_of(const DeclaredRequest& request) {
  return plan::is_broadcast(request.tensor.name) ? Meter::Kind::kBroadcast : Meter::Kind::kReduction;
}

}  // namespace

void RequestFlow::begin(DeclaredRequest request) {
  const uint64_t bytes = request.tensor.bytes();
  statistics_.begin(bytes, now(), kind_of(request));
  statistics_.save(static_cast<int64_t>(request.tensor.memory_bytes()) - static_cast<int64_t>(bytes));
  if (const absl::Status status = state_.usable(); !status.ok()) {
    table_.refuse(request.request.handle, status);
    return note_end(request, false);
  }
  if (const auto started = table_.add(std::move(request)); started.has_value()) start(*started);
}

void RequestFlow::on_plan(const plan::Plan& plan) {
  for (const Request& request : table_.on_plan(plan)) start(request);
}

void RequestFlow::start(const Request& request) {
  record(trace::Kind::kRequested, request, request.requested_at);
  Buffer input = pipeline_->memory().borrow(request.input);
  pipeline_->start(
      {{request.handle, request.tensor, request.op, std::move(input), request.output}, request.access, request.step});
}

void RequestFlow::on_done(uint64_t handle, const absl::Status& status) {
  if (const auto ended = table_.end(handle, status); ended.has_value()) note_end(*ended, status.ok());
}

void RequestFlow::end_all(const absl::Status& status) {
  for (const DeclaredRequest& ended : table_.end_all(status)) note_end(ended, false);
}

void RequestFlow::note_end(const DeclaredRequest& ended, bool ok) {
  if (recorder_.is_on() && ok) record(trace::Kind::kDone, ended.request, now());
  statistics_.end(ended.declaration, ended.tensor.bytes(), ok, now(), kind_of(ended));
  declarations_.end(ended.declaration);
}

void RequestFlow::record(trace::Kind kind, const Request& request, absl::Duration when) {
  if (!recorder_.is_on()) return;
  recorder_.record({absl::ToInt64Nanoseconds(when), request.step, request.tensor, 0, 0, 0, kind});
}

}  // namespace gleaner::runtime
