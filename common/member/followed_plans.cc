#include "common/member/followed_plans.h"

#include "absl/strings/str_cat.h"
#include "common/base/faults.h"

namespace gleaner::member {

absl::StatusOr<bool> FollowedPlans::commit(uint32_t epoch) {
  if (has_begun() && committed_epoch() == epoch) return false;
  if (prepared_ == nullptr || prepared_epoch() != epoch) {
    return absl::InternalError(
        absl::StrCat("the coordinator commits a plan of epoch ", epoch, " that it did not prepare"));
  }
  committed_ = std::exchange(prepared_, nullptr);
  return true;
}

bool FollowedPlans::commit_as_others(bool ranks_only) {
  if (prepared_ == nullptr || prepared_->epoch != (ranks_only ? ranks_epoch_ : owners_epoch_)) return false;
  if (GLN_MUTATION("a member without a coordinator goes by nobody")) return false;
  GLN_RARE("member: a plan is committed that others follow");
  committed_ = std::exchange(prepared_, nullptr);
  return true;
}

}  // namespace gleaner::member
