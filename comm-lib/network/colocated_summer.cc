#include "comm-lib/network/colocated_summer.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace gleaner::network {

ColocatedSummer::ColocatedSummer(const Env& env, const Options& options, const kernels::Kernels* kernels,
                                 BufferPool* pool, trace::Recorder* recorder)
    : env_(env), options_(options), kernels_(kernels), pool_(pool), recorder_(recorder), transport_(&hub_, this) {}

void ColocatedSummer::open(uint32_t member) {
  if (is_open()) summer_->disconnect(absl::UnavailableError("this worker has another place in the job now"));
  summer_ = std::make_unique<service::Summer>(env_, engine::Options{options_.job, member, options_.memory_bytes},
                                              kernels_, pool_, recorder_);
}

void ColocatedSummer::close(const absl::Status& why) {
  summer_.reset();
  refusal_ = absl::StrCat("this worker's session has failed: ", why.message());
}

absl::Status ColocatedSummer::prepare(std::shared_ptr<const plan::Plan> plan) {
  return is_open() ? summer_->prepare(std::move(plan)) : absl::FailedPreconditionError(refusal_);
}

absl::Status ColocatedSummer::commit(uint32_t epoch) {
  return is_open() ? summer_->commit(epoch) : absl::FailedPreconditionError(refusal_);
}

void ColocatedSummer::on_connected(transport::Connection& connection) {
  if (!is_open()) return connection.close(absl::UnavailableError(refusal_));
  summer_->on_connected(connection);
}

absl::StatusOr<Buffer> ColocatedSummer::on_header(transport::Connection&, const wire::Header& header) {
  return pool_->take(header.payload_bytes);
}

void ColocatedSummer::on_frame(transport::Connection& connection, const wire::Header& header, Buffer payload) {
  if (!is_open()) return connection.close(absl::UnavailableError(refusal_));
  summer_->on_frame(connection, header, std::move(payload));
}

void ColocatedSummer::on_closed(transport::Connection& connection, const absl::Status& status) {
  if (is_open()) summer_->on_closed(connection, status);
}

}  // namespace gleaner::network
