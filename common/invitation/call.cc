#include "common/invitation/call.h"

#include <utility>

namespace gleaner::invitation {

Call* Call::start(std::shared_ptr<Acceptance> acceptance, grpc::CallbackServerContext* context, std::string token,
                  std::string nonce) {
  auto call = std::shared_ptr<Call>(new Call(std::move(acceptance), context, std::move(token), std::move(nonce)));
  {
    absl::MutexLock lock(&call->mutex_);
    call->self_ = call;
  }
  v1::InviteAnswer answer;
  *answer.mutable_challenge() = call->handshake_.challenge();
  call->send(std::move(answer));
  call->StartRead(&call->invite_);
  const gpr_timespec end = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(kProofMs, GPR_TIMESPAN));
  call->alarm_.Set(end, [weak = std::weak_ptr(call)](bool is_over) {
    const std::shared_ptr<Call> late = weak.lock();
    if (is_over && late != nullptr) {
      late->end(absl::DeadlineExceededError("expected an invitation; the stream was silent"));
    }
  });
  return call.get();
}

Call::Call(std::shared_ptr<Acceptance> acceptance, grpc::CallbackServerContext* context, std::string token,
           std::string nonce)
    : acceptance_(std::move(acceptance)), handshake_(std::move(token), std::move(nonce)), peer_(context->peer()) {}

void Call::send(v1::InviteAnswer answer) {
  absl::MutexLock lock(&mutex_);
  if (ending_) return;
  answers_.push_back(std::move(answer));
  advance();
}

void Call::end(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  if (std::exchange(ending_, true)) return;
  status_ = {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
  advance();
}

void Call::OnReadDone(bool ok) {
  if (ok) return acceptance_->on_invite(self(), invite_);
  end(absl::OkStatus());
}

void Call::OnWriteDone(bool ok) {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
  answers_.pop_front();
  if (!ok) {
    answers_.clear();
    ending_ = true;
  }
  advance();
}

void Call::OnCancel() {
  acceptance_->on_gone(this);
  end(absl::CancelledError("the inviter is gone"));
}

void Call::OnDone() {
  alarm_.Cancel();
  acceptance_->on_gone(this);
  acceptance_->on_done();
  // Every earlier callback held this lock, so none of them runs any more when `self` destroys the call.
  std::shared_ptr<Call> self;
  absl::MutexLock lock(&mutex_);
  self = std::move(self_);
}

std::shared_ptr<Call> Call::self() {
  absl::MutexLock lock(&mutex_);
  return self_;
}

void Call::advance() {
  if (writing_ || ended_) return;
  if (!answers_.empty()) {
    writing_ = true;
    StartWrite(&answers_.front());
  } else if (ending_) {
    ended_ = true;
    Finish(status_);
  }
}

}  // namespace gleaner::invitation
