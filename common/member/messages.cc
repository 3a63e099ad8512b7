#include "common/member/messages.h"

#include "common/proto/plan_codec.h"

namespace gleaner::member {
namespace {

void encode(const Heartbeat&, v1::MemberMessage& message) { message.mutable_heartbeat(); }

void encode(const Declare& value, v1::MemberMessage& message) {
  v1::Declare* const declare = message.mutable_declare();
  for (const plan::Tensor& tensor : value.tensors) proto::encode(tensor, declare->add_tensors());
  for (const plan::Operation& each : value.operations) proto::encode(each, declare->add_operations());
}

void encode(const Acknowledgement& value, v1::MemberMessage& message) {
  message.mutable_acknowledge()->set_epoch(value.epoch);
}

void encode(const Refusal& value, v1::MemberMessage& message) {
  message.mutable_refuse()->set_epoch(value.epoch);
  proto::encode(value.why, message.mutable_refuse()->mutable_why());
}

void encode(const Report& value, v1::MemberMessage& message) {
  v1::Report* const report = message.mutable_report();
  report->set_steps(value.steps);
  report->set_bytes(value.bytes);
  report->set_communication_seconds(value.communication_seconds);
  report->set_round_trip_seconds(value.round_trip_seconds);
  for (const Measured& measured : value.measured) {
    v1::Measured* const encoded = report->add_measured();
    encoded->set_epoch(measured.epoch);
    encoded->set_steps(measured.steps);
    encoded->set_bytes(measured.bytes);
    encoded->set_open_bytes(measured.open_bytes);
    encoded->set_communication_seconds(measured.communication_seconds);
  }
  report->set_epoch(value.epoch);
  report->set_workers_late_seconds(value.workers_late_seconds);
  for (const Late& late : value.late) {
    v1::Late* const encoded = report->add_late();
    encoded->set_member(late.member);
    encoded->set_seconds(late.seconds);
  }
  if (!value.waiting.has_value()) return;
  report->mutable_waiting()->set_tensor(value.waiting->tensor);
  report->mutable_waiting()->set_step(value.waiting->step);
  report->mutable_waiting()->set_seconds(absl::ToDoubleSeconds(value.waiting->elapsed));
}

void encode(const Begun& value, v1::MemberMessage& message) {
  message.mutable_begun()->set_tensor(value.tensor);
  message.mutable_begun()->set_push_pulls(value.push_pulls);
}

void encode(const Fault& value, v1::MemberMessage& message) {
  message.mutable_fault()->set_member(value.member);
  message.mutable_fault()->set_epoch(value.epoch);
  proto::encode(value.why, message.mutable_fault()->mutable_why());
}

void encode(const Leave& value, v1::MemberMessage& message) {
  proto::encode(value.status, message.mutable_leave()->mutable_status());
  message.mutable_leave()->set_epoch(value.epoch);
  message.mutable_leave()->set_again(value.again);
}

void encode(const Recalled& value, v1::MemberMessage& message) {
  proto::encode(*value.plan, message.mutable_recalled()->mutable_plan());
}

}  // namespace

v1::MemberMessage encode(const Message& message) {
  v1::MemberMessage encoded;
  std::visit([&encoded](const auto& each) { encode(each, encoded); }, message);
  return encoded;
}

void encode(const Resume& resume, v1::Resume* message) {
  message->set_session(resume.session);
  message->set_committed(resume.committed);
  message->set_prepared(resume.prepared);
  message->set_plan_digest(resume.plan_digest);
  message->set_member(resume.member);
  message->set_term(resume.term);
}

}  // namespace gleaner::member
