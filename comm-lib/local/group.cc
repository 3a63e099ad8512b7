#include "comm-lib/local/group.h"

#include "absl/strings/str_cat.h"
#include "comm-lib/local/follower.h"
#include "comm-lib/local/leader.h"

namespace gleaner::local {

absl::StatusOr<std::unique_ptr<Group>> Group::create(const Env& env, const Options& options,
                                                     const kernels::Kernels* kernels, Events* events) {
  if (options.local_size < 2 || options.local_size > kMaxLocalRanks) {
    return absl::InvalidArgumentError(absl::StrCat("expected 2 to ", kMaxLocalRanks, " local ranks, got ",
                                                   options.local_size, "; check GLEANER_LOCAL_SIZE"));
  }
  if (options.local_rank >= options.local_size) {
    return absl::InvalidArgumentError(absl::StrCat("expected a local rank below the local size of ", options.local_size,
                                                   ", got ", options.local_rank, "; check GLEANER_LOCAL_RANK"));
  }
  return options.local_rank == 0 ? Leader::create(env, options, kernels, events)
                                 : Follower::create(env, options, kernels, events);
}

}  // namespace gleaner::local
