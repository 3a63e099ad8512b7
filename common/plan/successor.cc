#include "common/plan/successor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/plan/schedule_name.h"

namespace gleaner::plan {
namespace {

template <typename... Parts>
absl::Status differs(const Plan& later, const Plan& earlier, const Parts&... parts) {
  return absl::FailedPreconditionError(
      absl::StrCat("the plan of epoch ", later.epoch, " can't follow that of epoch ", earlier.epoch, ": ", parts...));
}

bool same_cut(const Partition& a, const Partition& b) {
  return a.tensor == b.tensor && a.offset == b.offset && a.bytes == b.bytes;
}

// Returns whether the tensors are the same except for their strategies.
bool same_gradient(Tensor a, const Tensor& b) {
  a.schedule = b.schedule;
  a.schedule_from = b.schedule_from;
  return a == b;
}

// Checks the strategies of tensors that both plans have, and of new ones.
absl::Status check_strategies(const Plan& later, const Plan& earlier) {
  for (size_t i = 0; i < later.tensors.size(); ++i) {
    const Tensor& now = later.tensors[i];
    if (i >= earlier.tensors.size()) {
      if (now.schedule_from == 0) continue;
      return differs(later, earlier, "tensor '", now.name, "' is new, and its strategy begins with push_pull ",
                     now.schedule_from, ", not 0");
    }
    const Tensor& before = earlier.tensors[i];
    if (now.schedule_from > before.schedule_from) continue;
    if (now.schedule_from == before.schedule_from && now.schedule == before.schedule) continue;
    return differs(later, earlier, "the strategy of tensor '", now.name, "' changes from push_pull ", now.schedule_from,
                   " on; expected a higher number than ", before.schedule_from);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status check_successor(const Plan& later, const Plan& earlier) {
  if (later.epoch <= earlier.epoch) return differs(later, earlier, "the epoch must be higher");
  if (later.workers != earlier.workers || later.local_ranks != earlier.local_ranks) {
    return differs(later, earlier, later.workers, " workers of ", later.local_ranks, " ranks, not ", earlier.workers,
                   " of ", earlier.local_ranks);
  }
  if (later.bits != earlier.bits) {
    return differs(later, earlier, "its bits are of class ", name_of(later.bits), ", not ", name_of(earlier.bits));
  }
  if (later.members.size() < earlier.members.size()) {
    return differs(later, earlier, later.members.size(), " places for members, not ", earlier.members.size());
  }
  for (uint32_t i = 0; i < later.workers; ++i) {
    if (is_same(later.members[i], earlier.members[i])) continue;
    return differs(later, earlier, later.member_name(i), " is at ", later.members[i].address, " since epoch ",
                   later.members[i].since, ", not at ", earlier.members[i].address, " since epoch ",
                   earlier.members[i].since);
  }
  const bool only_adds =
      later.tensors.size() >= earlier.tensors.size() && later.partitions.size() >= earlier.partitions.size() &&
      later.schedules.size() >= earlier.schedules.size() &&
      std::equal(earlier.schedules.begin(), earlier.schedules.end(), later.schedules.begin()) &&
      std::equal(earlier.tensors.begin(), earlier.tensors.end(), later.tensors.begin(), same_gradient) &&
      std::equal(earlier.partitions.begin(), earlier.partitions.end(), later.partitions.begin(), same_cut);
  if (!only_adds)
    return differs(later, earlier,
                   "it changes tensors, schedules or partitions of the earlier plan; it may only add some");
  if (absl::Status strategies = check_strategies(later, earlier); !strategies.ok()) return strategies;
  for (size_t i = 0; i < later.partitions.size(); ++i) {
    const Partition& now = later.partitions[i];
    if (has_moved(now, earlier.epoch)) continue;
    if (i >= earlier.partitions.size() || now.owner != earlier.partitions[i].owner ||
        now.since != earlier.partitions[i].since) {
      return differs(later, earlier, later.member_name(now.owner), " owns partition ", i, " since epoch ", now.since,
                     ", which contradicts the earlier plan");
    }
    if (!is_same(later.members[now.owner], earlier.members[now.owner])) {
      return differs(later, earlier, later.member_name(now.owner),
                     " is not the same member as before, but keeps partition ", i);
    }
  }
  return absl::OkStatus();
}

}  // namespace gleaner::plan
