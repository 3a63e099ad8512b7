#include "coordinator/service/tracing.h"

#include <algorithm>

#include "common/control/codec.h"
#include "common/proto/plan_codec.h"

namespace gleaner::coordinator {
namespace {

using control::TraceOrder;

// A member waits for the answer to its Leave for as long as the job's deadline, 10 s by default.
constexpr absl::Duration kHoldBack = absl::Milliseconds(1700);
// The time in which other ranks may also leave, before the observer is told that the job is ending.
constexpr absl::Duration kOthersHave = absl::Milliseconds(300);

}  // namespace

absl::Status Tracing::enter(StreamId observer) {
  if (rounds_.phase() == coordinator::Phase::kEnded) return absl::FailedPreconditionError("this job has ended");
  if (observer_.has_value()) {
    return absl::FailedPreconditionError("another observer traces this job; try again when its trace is done");
  }
  observer_ = observer;
  phase_ = Phase::kNone;
  announced_ = false;
  ++recording_;
  return absl::OkStatus();
}

absl::Status Tracing::ask(const v1::Observe& observe, Sends& sends) {
  switch (observe.order()) {
    case v1::TRACE_ORDER_RECORD:
      phase_ = Phase::kAsked;
      begin_if_asked(sends);
      return absl::OkStatus();
    case v1::TRACE_ORDER_STOP:
      stop(sends);
      return absl::OkStatus();
    case v1::TRACE_ORDER_SEND: {
      const Roster& roster = core().roster();
      if (observe.seat() >= roster.size()) {
        return absl::InvalidArgumentError("the observer asks for the trace of a member that does not exist");
      }
      const Seat& seat = roster[observe.seat()];
      if (seat.state == Seat::State::kPresent) tell(seat.stream, TraceOrder::kSend, sends);
      return absl::OkStatus();
    }
    default:
      return absl::InvalidArgumentError("unknown order about a trace; install the same version of gleaner on both");
  }
}

void Tracing::begin(Sends& sends) {
  phase_ = Phase::kRecording;
  tell_members(TraceOrder::kRecord, sends);
  v1::Observed observed;
  observed.set_begun(true);
  tell_observer(observed, sends);
}

void Tracing::stop(Sends& sends) {
  phase_ = Phase::kStopped;
  tell_members(TraceOrder::kStop, sends);
  v1::Observed observed;
  v1::Stopped* stopped = observed.mutable_stopped();
  proto::encode(core().plan(), stopped->mutable_plan());
  const Roster& roster = core().roster();
  const uint32_t local_ranks = std::max(1u, core().plan().local_ranks);
  for (uint32_t i = 0; i < roster.size(); ++i) {
    v1::Seat* seat = stopped->add_seats();
    seat->set_seat(i);
    seat->set_member(roster.member_of(i));
    seat->set_local_rank(roster.is_summer(i) ? 0 : i % local_ranks);
    seat->set_present(roster[i].state == Seat::State::kPresent);
  }
  tell_observer(observed, sends);
}

void Tracing::on_report(uint64_t steps, Sends& sends) {
  if (phase_ != Phase::kRecording) return;
  v1::Observed observed;
  observed.set_steps(steps);
  tell_observer(observed, sends);
}

void Tracing::on_traced(StreamId member, const v1::Traced& piece, Sends& sends) const {
  const std::optional<uint32_t> seat = core().roster().seat_of(member);
  if (!observer_.has_value() || !seat.has_value() || piece.recording() != recording_) return;
  v1::Observed observed;
  observed.mutable_part()->set_seat(*seat);
  *observed.mutable_part()->mutable_traced() = piece;
  tell_observer(observed, sends);
}

bool Tracing::on_closed(StreamId stream, Sends& sends) {
  if (observer_ != stream) return std::erase(leaving_, stream) > 0;
  observer_ = std::nullopt;
  if (phase_ == Phase::kRecording || phase_ == Phase::kStopped) tell_members(TraceOrder::kForget, sends);
  phase_ = Phase::kNone;
  return false;
}

void Tracing::begin_if_asked(Sends& sends) {
  if (phase_ == Phase::kAsked && core().phase() == coordinator::Phase::kRunning) begin(sends);
}

bool Tracing::hold_back(StreamId member, absl::Duration now, Sends& sends) {
  if (phase_ != Phase::kRecording && phase_ != Phase::kStopped) return false;
  if (leaving_.empty()) held_since_ = now;
  if (std::find(leaving_.begin(), leaving_.end(), member) == leaving_.end()) leaving_.push_back(member);
  announce_end(now, sends);
  return true;
}

// The first rank to leave has its last result; other ranks may be about to receive it.
void Tracing::announce_end(absl::Duration now, Sends& sends) {
  const Roster& roster = core().roster();
  const bool all = roster.left_ranks() + leaving_.size() >= roster.ranks();
  if (announced_ || leaving_.empty() || (!all && now - held_since_ < kOthersHave)) return;
  announced_ = true;
  v1::Observed observed;
  observed.set_ending(true);
  tell_observer(observed, sends);
}

std::vector<StreamId> Tracing::release(absl::Duration now, Sends& sends) {
  announce_end(now, sends);
  const bool waits = observer_.has_value() && now - held_since_ < kHoldBack;
  return waits ? std::vector<StreamId>() : std::exchange(leaving_, {});
}

void Tracing::tell_members(TraceOrder order, Sends& sends) const {
  const Roster& roster = core().roster();
  for (uint32_t i = 0; i < roster.size(); ++i) {
    if (roster[i].state == Seat::State::kPresent) tell(roster[i].stream, order, sends);
  }
}

void Tracing::tell(StreamId member, TraceOrder order, Sends& sends) const {
  sends.emplace_back(member, control::encode(control::Trace{order, recording_}));
}

void Tracing::tell_observer(v1::Observed observed, Sends& sends) const {
  if (!observer_.has_value()) return;
  v1::CoordinatorMessage message;
  message.mutable_observed()->Swap(&observed);
  sends.emplace_back(*observer_, std::move(message));
}

}  // namespace gleaner::coordinator
