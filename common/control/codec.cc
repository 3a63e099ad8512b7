#include "common/control/codec.h"

#include <cmath>
#include <utility>

#include "common/base/names.h"
#include "common/base/status_macros.h"
#include "common/proto/plan_codec.h"

namespace gleaner::control {
namespace {

constexpr int kMostEpochs = 64;

// Returns a time or a rate that a member has sent; 0 if there is none of that size.
double plausible(double said) { return std::isfinite(said) && said > 0 ? said : 0; }

absl::StatusOr<std::shared_ptr<const plan::Plan>> decode_plan(const v1::Plan& message) {
  GLN_ASSIGN_OR_RETURN(plan::Plan plan, proto::decode(message));
  return std::make_shared<const plan::Plan>(std::move(plan));
}

// Member to coordinator.

void fill(const Heartbeat&, v1::MemberMessage& message) { message.mutable_heartbeat(); }

void fill(const Declare& value, v1::MemberMessage& message) {
  v1::Declare* const declare = message.mutable_declare();
  for (const plan::Tensor& tensor : value.tensors) proto::encode(tensor, declare->add_tensors());
  for (const plan::Operation& each : value.operations) proto::encode(each, declare->add_operations());
}

absl::StatusOr<MemberMessage> decode(const v1::Declare& message) {
  Declare declare;
  GLN_ASSIGN_OR_RETURN(declare.tensors, proto::decode(message.tensors()));
  GLN_ASSIGN_OR_RETURN(declare.operations, proto::decode(message.operations()));
  return declare;
}

void fill(const Acknowledgement& value, v1::MemberMessage& message) {
  message.mutable_acknowledge()->set_epoch(value.epoch);
}

void fill(const Refusal& value, v1::MemberMessage& message) {
  message.mutable_refuse()->set_epoch(value.epoch);
  proto::encode(value.why, message.mutable_refuse()->mutable_why());
}

void fill(const Report& value, v1::MemberMessage& message) {
  v1::Report* const report = message.mutable_report();
  report->set_steps(value.steps);
  report->set_bytes(value.bytes);
  report->set_communication_seconds(value.communication_seconds);
  report->set_round_trip_seconds(value.round_trip_seconds);
  report->set_overhead_seconds(value.overhead_seconds);
  report->set_link_bits_per_second(value.link_bits_per_second);
  for (const Measured& measured : value.measured) {
    v1::Measured* const encoded = report->add_measured();
    encoded->set_epoch(measured.epoch);
    encoded->set_steps(measured.steps);
    encoded->set_bytes(measured.bytes);
    encoded->set_open_bytes(measured.open_bytes);
    encoded->set_communication_seconds(measured.communication_seconds);
    encoded->set_step_bytes(measured.step_bytes);
    encoded->set_last_step(measured.last_step);
    encoded->set_saved_bytes(measured.saved_bytes);
  }
  report->set_epoch(value.epoch);
  report->set_step_bytes(value.step_bytes);
  report->set_saved_bytes(value.saved_bytes);
  report->set_workers_late_seconds(value.workers_late_seconds);
  for (const Late& late : value.late) {
    v1::Late* const encoded = report->add_late();
    encoded->set_member(late.member);
    encoded->set_seconds(late.seconds);
  }
  if (value.packs.has_value()) {
    v1::Packs* const packs = report->mutable_packs();
    packs->set_fusion_bytes(value.packs->fusion_bytes);
    packs->set_seconds(value.packs->seconds);
    packs->set_seconds_without_packs(value.packs->seconds_without_packs);
  }
  if (!value.waiting.has_value()) return;
  report->mutable_waiting()->set_tensor(value.waiting->tensor);
  report->mutable_waiting()->set_step(value.waiting->step);
  report->mutable_waiting()->set_seconds(absl::ToDoubleSeconds(value.waiting->elapsed));
  for (const uint32_t member : value.waiting->members) report->mutable_waiting()->add_members(member);
}

absl::StatusOr<MemberMessage> decode(const v1::Report& message) {
  Report report{message.steps(), message.bytes(), plausible(message.communication_seconds())};
  report.round_trip_seconds = plausible(message.round_trip_seconds());
  report.overhead_seconds = plausible(message.overhead_seconds());
  report.link_bits_per_second = plausible(message.link_bits_per_second());
  for (const v1::Measured& measured : message.measured()) {
    if (report.measured.size() == kMostEpochs) break;
    report.measured.push_back({measured.epoch(), measured.steps(), measured.bytes(), measured.open_bytes(),
                               plausible(measured.communication_seconds()), measured.step_bytes(), measured.last_step(),
                               measured.saved_bytes()});
  }
  report.epoch = message.epoch();
  report.step_bytes = message.step_bytes();
  report.saved_bytes = message.saved_bytes();
  report.workers_late_seconds = plausible(message.workers_late_seconds());
  for (const v1::Late& late : message.late()) {
    if (report.late.size() == plan::kMaxMembers) break;
    report.late.push_back({late.member(), plausible(late.seconds())});
  }
  if (const v1::Packs& packs = message.packs(); message.has_packs()) {
    const double bytes = packs.fusion_bytes();
    report.packs = {bytes > 0 ? bytes : 0, plausible(packs.seconds()), plausible(packs.seconds_without_packs())};
  }
  if (!message.has_waiting()) return report;
  const v1::Waiting& waiting = message.waiting();
  GLN_RETURN_IF_ERROR(check_name("a tensor's name", waiting.tensor(), plan::kMaxTensorNameBytes));
  report.waiting = Waiting{waiting.tensor(),
                           waiting.step(),
                           absl::Seconds(waiting.seconds()),
                           {waiting.members().begin(), waiting.members().end()}};
  return report;
}

void fill(const Begun& value, v1::MemberMessage& message) {
  message.mutable_begun()->set_tensor(value.tensor);
  message.mutable_begun()->set_push_pulls(value.push_pulls);
}

void fill(const PushPulls& value, v1::MemberMessage& message) {
  message.mutable_push_pulls()->set_epoch(value.epoch);
  message.mutable_push_pulls()->mutable_counts()->Assign(value.counts.begin(), value.counts.end());
}

void fill(const Fault& value, v1::MemberMessage& message) {
  message.mutable_fault()->set_member(value.member);
  message.mutable_fault()->set_epoch(value.epoch);
  proto::encode(value.why, message.mutable_fault()->mutable_why());
}

void fill(const Leave& value, v1::MemberMessage& message) {
  proto::encode(value.status, message.mutable_leave()->mutable_status());
  message.mutable_leave()->set_epoch(value.epoch);
  message.mutable_leave()->set_again(value.again);
}

void fill(const Recalled& value, v1::MemberMessage& message) {
  proto::encode(*value.plan, message.mutable_recalled()->mutable_plan());
}

// Coordinator to member.

void fill(const Heartbeat&, v1::CoordinatorMessage& message) { message.mutable_heartbeat(); }
void fill(const Recall&, v1::CoordinatorMessage& message) { message.mutable_recall(); }
void fill(const Prepare& value, v1::CoordinatorMessage& message) {
  proto::encode(*value.plan, message.mutable_prepare()->mutable_plan());
}
void fill(const Commit& value, v1::CoordinatorMessage& message) { message.mutable_commit()->set_epoch(value.epoch); }
void fill(const Withdraw& value, v1::CoordinatorMessage& message) {
  message.mutable_withdraw()->set_epoch(value.epoch);
}
void fill(const Ending& value, v1::CoordinatorMessage& message) {
  message.mutable_ending()->mutable_left()->Add(value.left.begin(), value.left.end());
}
void fill(const Failed& value, v1::CoordinatorMessage& message) {
  proto::encode(value.status, message.mutable_failed()->mutable_status());
}
void fill(const Regroup& value, v1::CoordinatorMessage& message) {
  proto::encode(value.why, message.mutable_failed()->mutable_status());
  message.mutable_failed()->set_again(true);
}
void fill(const Newcomers& value, v1::CoordinatorMessage& message) {
  message.mutable_newcomers()->set_workers(value.workers);
}
void fill(const Inquire& value, v1::CoordinatorMessage& message) {
  message.mutable_inquire()->set_tensor(value.tensor);
}
void fill(const CountPushPulls&, v1::CoordinatorMessage& message) { message.mutable_count_push_pulls(); }
void fill(const Trace& value, v1::CoordinatorMessage& message) {
  message.mutable_trace()->set_order(encode(value.order));
  message.mutable_trace()->set_recording(value.recording);
}
void fill(const Finished&, v1::CoordinatorMessage& message) { message.mutable_finished(); }
void fill(const Goodbye&, v1::CoordinatorMessage& message) { message.mutable_goodbye(); }

CoordinatorMessage decode(const v1::Failed& message) {
  absl::Status status = proto::decode(message.status());
  if (message.again()) return Regroup{std::move(status)};
  return Failed{std::move(status)};
}

CoordinatorMessage decode(const v1::Trace& message) {
  const std::optional<TraceOrder> order = control::decode(message.order());
  if (!order.has_value()) return Heartbeat{};
  return Trace{*order, message.recording()};
}

}  // namespace

v1::MemberMessage encode(const MemberMessage& message) {
  v1::MemberMessage encoded;
  std::visit([&encoded](const auto& each) { fill(each, encoded); }, message);
  return encoded;
}

absl::StatusOr<MemberMessage> decode(const v1::MemberMessage& message) {
  using Kind = v1::MemberMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kDeclare:
      return decode(message.declare());
    case Kind::kAcknowledge:
      return Acknowledgement{message.acknowledge().epoch()};
    case Kind::kRefuse:
      return Refusal{message.refuse().epoch(), proto::decode(message.refuse().why())};
    case Kind::kReport:
      return decode(message.report());
    case Kind::kBegun:
      return Begun{message.begun().tensor(), message.begun().push_pulls()};
    case Kind::kPushPulls:
      return PushPulls{message.push_pulls().epoch(),
                       {message.push_pulls().counts().begin(), message.push_pulls().counts().end()}};
    case Kind::kFault:
      return Fault{message.fault().member(), message.fault().epoch(), proto::decode(message.fault().why())};
    case Kind::kLeave:
      return Leave{proto::decode(message.leave().status()), message.leave().epoch(), message.leave().again()};
    case Kind::kRecalled: {
      GLN_ASSIGN_OR_RETURN(auto plan, decode_plan(message.recalled().plan()));
      return Recalled{std::move(plan)};
    }
    case Kind::kObserve:
      return absl::InvalidArgumentError("a message of an observer came from a member");
    case Kind::kJoin:
      return absl::InvalidArgumentError("a second Join came on one stream");
    case Kind::kTraced:
    case Kind::kHeartbeat:
    case Kind::KIND_NOT_SET:  // a message of a later version, which may be ignored
      break;
  }
  return Heartbeat{};
}

v1::CoordinatorMessage encode(const CoordinatorMessage& message) {
  v1::CoordinatorMessage encoded;
  std::visit([&encoded](const auto& each) { fill(each, encoded); }, message);
  return encoded;
}

absl::StatusOr<CoordinatorMessage> decode(const v1::CoordinatorMessage& message) {
  using Kind = v1::CoordinatorMessage::KindCase;
  switch (message.kind_case()) {
    case Kind::kRecall:
      return Recall{};
    case Kind::kPrepare: {
      GLN_ASSIGN_OR_RETURN(auto plan, decode_plan(message.prepare().plan()));
      return Prepare{std::move(plan)};
    }
    case Kind::kCommit:
      return Commit{message.commit().epoch()};
    case Kind::kWithdraw:
      return Withdraw{message.withdraw().epoch()};
    case Kind::kEnding:
      return Ending{{message.ending().left().begin(), message.ending().left().end()}};
    case Kind::kFailed:
      return decode(message.failed());
    case Kind::kNewcomers:
      return Newcomers{message.newcomers().workers()};
    case Kind::kInquire:
      return Inquire{message.inquire().tensor()};
    case Kind::kCountPushPulls:
      return CountPushPulls{};
    case Kind::kTrace:
      return decode(message.trace());
    case Kind::kFinished:
      return Finished{};
    case Kind::kGoodbye:
      return Goodbye{};
    case Kind::kChallenge:
    case Kind::kWelcome:
    case Kind::kObserved:
    case Kind::kHeartbeat:
    case Kind::KIND_NOT_SET:  // a message of a later version, which may be ignored
      break;
  }
  return Heartbeat{};
}

v1::TraceOrder encode(TraceOrder order) {
  switch (order) {
    case TraceOrder::kRecord:
      return v1::TRACE_ORDER_RECORD;
    case TraceOrder::kStop:
      return v1::TRACE_ORDER_STOP;
    case TraceOrder::kSend:
      return v1::TRACE_ORDER_SEND;
    case TraceOrder::kForget:
      return v1::TRACE_ORDER_FORGET;
  }
  return v1::TRACE_ORDER_UNSPECIFIED;
}

std::optional<TraceOrder> decode(v1::TraceOrder order) {
  for (const TraceOrder known : {TraceOrder::kRecord, TraceOrder::kStop, TraceOrder::kSend, TraceOrder::kForget}) {
    if (encode(known) == order) return known;
  }
  return std::nullopt;
}

}  // namespace gleaner::control
