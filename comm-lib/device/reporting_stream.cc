#include "comm-lib/device/reporting_stream.h"

#include "common/base/status_macros.h"

namespace gleaner::device {

absl::StatusOr<ReportingStream> ReportingStream::open(Device* device, Completions* completions) {
  GLN_ASSIGN_OR_RETURN(auto work, device->create_stream(Priority::kHigh));
  GLN_ASSIGN_OR_RETURN(auto reports, device->create_stream(Priority::kHigh));
  GLN_ASSIGN_OR_RETURN(auto reached, device->create_event());
  return ReportingStream(completions, std::move(work), std::move(reports), std::move(reached));
}

absl::Status ReportingStream::notify(uint64_t tag) {
  absl::Status status = work_->record(*reached_);
  if (status.ok()) status = reports_->wait_for(*reached_);
  if (status.ok()) status = reports_->notify(*completions_, tag);
  has_unseen_work_ = has_unseen_work_ || !status.ok();
  return status;
}

absl::Status ReportingStream::check() const {
  GLN_RETURN_IF_ERROR(work_->check());
  return reports_->check();
}

}  // namespace gleaner::device
