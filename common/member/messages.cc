#include "common/member/messages.h"

#include "common/proto/plan_codec.h"

namespace gleaner::member {
namespace {

void encode(const Heartbeat&, v1::MemberMessage& message) { message.mutable_heartbeat(); }

void encode(const Declaration& what, v1::MemberMessage& message) {
  v1::Declare* const declare = message.mutable_declare();
  for (const plan::Tensor& tensor : what.tensors) proto::encode(tensor, declare->add_tensors());
  for (const plan::Operation& each : what.operations) proto::encode(each, declare->add_operations());
}

void encode(const Acknowledgement& what, v1::MemberMessage& message) {
  message.mutable_acknowledge()->set_epoch(what.epoch);
}

void encode(const Refusal& what, v1::MemberMessage& message) {
  message.mutable_refuse()->set_epoch(what.epoch);
  proto::encode(what.why, message.mutable_refuse()->mutable_why());
}

void encode(const Report& what, v1::MemberMessage& message) {
  v1::Report* const report = message.mutable_report();
  report->set_steps(what.steps);
  report->set_bytes(what.bytes);
  report->set_communication_seconds(what.communication_seconds);
  report->set_round_trip_seconds(what.round_trip_seconds);
  for (const Measured& measured : what.measured) {
    v1::Measured* const encoded = report->add_measured();
    encoded->set_epoch(measured.epoch);
    encoded->set_steps(measured.steps);
    encoded->set_bytes(measured.bytes);
    encoded->set_open_bytes(measured.open_bytes);
    encoded->set_communication_seconds(measured.communication_seconds);
  }
  if (!what.waiting.has_value()) return;
  report->mutable_waiting()->set_tensor(what.waiting->tensor);
  report->mutable_waiting()->set_step(what.waiting->step);
  report->mutable_waiting()->set_seconds(absl::ToDoubleSeconds(what.waiting->elapsed));
}

void encode(const Begun& what, v1::MemberMessage& message) {
  message.mutable_begun()->set_tensor(what.tensor);
  message.mutable_begun()->set_push_pulls(what.push_pulls);
}

void encode(const Accusation& what, v1::MemberMessage& message) {
  message.mutable_fault()->set_member(what.member);
  proto::encode(what.why, message.mutable_fault()->mutable_why());
}

void encode(const Leave& what, v1::MemberMessage& message) {
  proto::encode(what.status, message.mutable_leave()->mutable_status());
  message.mutable_leave()->set_epoch(what.epoch);
  message.mutable_leave()->set_again(what.again);
}

void encode(const Recalled& what, v1::MemberMessage& message) {
  proto::encode(*what.plan, message.mutable_recalled()->mutable_plan());
}

}  // namespace

v1::MemberMessage encode(const Saying& what) {
  v1::MemberMessage message;
  std::visit([&message](const auto& each) { encode(each, message); }, what);
  return message;
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
