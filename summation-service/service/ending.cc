#include "summation-service/service/ending.h"

namespace gleaner::service {

void Ending::end(const absl::Status& status) {
  if (!ended_.has_value()) ended_ = status;
}

bool Ending::leave(absl::Duration now) {
  if (leave_by_.has_value()) return false;
  leave_by_ = now + kLeaveTimeout;
  return true;
}

void Ending::tick(bool has_workers, absl::Duration now) {
  if (!coordinator_lost_ || has_workers) last_connected_ = now;
  if (coordinator_lost_ && now - last_connected_ > deadline_) end(absl::OkStatus());
  if (leave_by_.has_value() && now > *leave_by_) end(absl::OkStatus());
}

absl::Status Ending::status() const {
  if (leave_by_.has_value() && absl::IsAborted(*ended_)) return absl::OkStatus();
  return *ended_;
}

}  // namespace gleaner::service
