#include "coordinator/job_messages.h"

#include <cmath>

#include "common/base/names.h"
#include "common/proto/plan_codec.h"

namespace gleaner::coordinator {
namespace {

constexpr int kMostEpochs = 64;

double seconds(double said) { return std::isfinite(said) && said > 0 ? said : 0; }

}  // namespace

Identity decode(const v1::Identity& message) {
  Identity identity;
  identity.role = message.role() == v1::ROLE_SUMMER     ? Role::kSummer
                  : message.role() == v1::ROLE_OBSERVER ? Role::kObserver
                                                        : Role::kWorker;
  if (message.has_index()) identity.index = message.index();
  identity.local_rank = message.local_rank();
  identity.local_size = message.local_size();
  identity.address = message.address();
  identity.bits_per_second = message.bits_per_second();
  identity.endpoints = {message.endpoints().begin(), message.endpoints().end()};
  identity.network = message.network();
  return identity;
}

absl::Status check_waiting(const v1::Report& message) {
  if (!message.has_waiting()) return absl::OkStatus();
  return check_name("a tensor's name", message.waiting().tensor(), plan::kMaxTensorNameBytes);
}

std::optional<Waiting> decode_waiting(const v1::Report& message, absl::Duration now) {
  if (!message.has_waiting()) return std::nullopt;
  const v1::Waiting& waiting = message.waiting();
  return Waiting{waiting.tensor(), waiting.step(), now - absl::Seconds(waiting.seconds())};
}

Report decode(const v1::Report& message) {
  Report report{message.steps(), message.bytes(), seconds(message.communication_seconds())};
  report.round_trip_seconds = seconds(message.round_trip_seconds());
  for (const v1::Measured& measured : message.measured()) {
    if (report.measured.size() == kMostEpochs) break;
    report.measured.push_back({measured.epoch(), measured.steps(), measured.bytes(), measured.open_bytes(),
                               seconds(measured.communication_seconds())});
  }
  report.epoch = message.epoch();
  report.workers_late_seconds = seconds(message.workers_late_seconds());
  for (const v1::Late& late : message.late()) {
    if (report.late.size() == plan::kMaxMembers) break;
    report.late.push_back({late.member(), seconds(late.seconds())});
  }
  return report;
}

std::optional<Resume> decode_resume(const v1::Join& message) {
  if (!message.has_resume()) return std::nullopt;
  const v1::Resume& resume = message.resume();
  return Resume{resume.session(),     resume.committed(), resume.prepared(),
                resume.plan_digest(), resume.member(),    resume.term()};
}

v1::CoordinatorMessage encode(const Message& message) {
  v1::CoordinatorMessage encoded;
  if (const auto* prepare = std::get_if<Prepare>(&message)) {
    proto::encode(*prepare->plan, encoded.mutable_prepare()->mutable_plan());
  } else if (const auto* commit = std::get_if<Commit>(&message)) {
    encoded.mutable_commit()->set_epoch(commit->epoch);
  } else if (const auto* failed = std::get_if<Failed>(&message)) {
    proto::encode(failed->status, encoded.mutable_failed()->mutable_status());
  } else if (const auto* regroup = std::get_if<Regroup>(&message)) {
    proto::encode(regroup->why, encoded.mutable_failed()->mutable_status());
    encoded.mutable_failed()->set_again(true);
  } else if (const auto* newcomers = std::get_if<Newcomers>(&message)) {
    encoded.mutable_newcomers()->set_workers(newcomers->workers);
  } else if (const auto* inquire = std::get_if<Inquire>(&message)) {
    encoded.mutable_inquire()->set_tensor(inquire->tensor);
  } else if (std::holds_alternative<Ending>(message)) {
    encoded.mutable_ending();
  } else if (std::holds_alternative<Recall>(message)) {
    encoded.mutable_recall();
  } else if (std::holds_alternative<Finished>(message)) {
    encoded.mutable_finished();
  } else if (std::holds_alternative<Goodbye>(message)) {
    encoded.mutable_goodbye();
  } else {
    encoded.mutable_heartbeat();
  }
  return encoded;
}

}  // namespace gleaner::coordinator
