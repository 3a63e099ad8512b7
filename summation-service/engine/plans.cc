#include "summation-service/engine/plans.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"
#include "common/base/status_macros.h"
#include "common/plan/successor.h"
#include "summation-service/engine/checks.h"

namespace gleaner::engine {

absl::Status Plans::check_successor(const plan::Plan& plan) const {
  return in_force_ == nullptr ? absl::OkStatus() : plan::check_successor(plan, *in_force_);
}

void Plans::discard(uint32_t epoch) {
  if (commits(epoch)) prepared_ = nullptr;
}

void Plans::commit() {
  in_force_ = std::move(prepared_);
  prepared_ = nullptr;
}

absl::Status Plans::check_frame(uint32_t worker, const wire::Header& header) const {
  const plan::Plan* const plan = commits(header.epoch) ? prepared_.get() : in_force_.get();
  if (plan == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("member ", worker, " sent a frame of epoch ", header.epoch, " before any plan was prepared"));
  }
  if (worker >= plan->workers || header.sender != worker || header.job != identity_.job) {
    return absl::InvalidArgumentError(absl::StrCat("expected a frame of job ", identity_.job, " from member ", worker,
                                                   ", one of ", plan->workers, " workers; got one of job ", header.job,
                                                   " from member ", header.sender));
  }
  if (header.epoch > plan->epoch) {
    return absl::FailedPreconditionError(absl::StrCat(plan->member_name(worker), " sent a frame of epoch ",
                                                      header.epoch, ", but the latest plan of this summer is of epoch ",
                                                      plan->epoch));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Plans::is_fenced(uint32_t worker, uint32_t epoch, const wire::PartitionKey& key) const {
  GLN_RETURN_IF_ERROR(check_exists(*in_force_, worker, key));
  if (plan::has_moved(in_force_->partitions_of(key.tensor)[key.partition], epoch)) {
    GLN_RARE("engine: a frame that was meant for an earlier owner is dropped");
    return !GLN_MUTATION("frames of earlier epochs count");
  }
  GLN_RETURN_IF_ERROR(check_owner(*in_force_, identity_.self, worker, key));
  return false;
}

}  // namespace gleaner::engine
