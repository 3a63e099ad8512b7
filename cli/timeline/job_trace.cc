#include "cli/timeline/job_trace.h"

#include "absl/strings/str_cat.h"

namespace gleaner::cli {

std::string member_name(const plan::Plan& plan, uint32_t member) {
  return member < plan.workers ? absl::StrCat("worker ", member) : absl::StrCat("summer ", member - plan.workers);
}

std::string rank_name(const plan::Plan& plan, const RankTrace& rank) {
  const bool many = plan.local_ranks > 1 && rank.member < plan.workers;
  return absl::StrCat(member_name(plan, rank.member), many ? absl::StrCat(".", rank.local_rank) : "");
}

}  // namespace gleaner::cli
