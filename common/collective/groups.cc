#include "common/collective/groups.h"

#include "absl/strings/str_cat.h"

namespace gleaner::collective {

std::vector<uint32_t> even_sizes(uint32_t ranks, uint32_t count) {
  std::vector<uint32_t> sizes;
  for (uint32_t group = 0; group < count; ++group) {
    sizes.push_back(static_cast<uint32_t>(slice_elements(ranks, count, {group, 1})));
  }
  return sizes;
}

Groups even_groups(uint32_t ranks, uint32_t count) { return groups_of_sizes(even_sizes(ranks, count), ranks); }

Groups groups_of_sizes(const std::vector<uint32_t>& sizes, uint32_t ranks) {
  Groups groups;
  uint32_t rank = 0;
  for (const uint32_t size : sizes) {
    std::vector<uint32_t>& group = groups.emplace_back();
    while (group.size() < size && rank <= ranks) group.push_back(rank++);
  }
  return groups;
}

absl::Status check_groups(const Groups& groups, uint32_t ranks) {
  std::vector<bool> seen(ranks, false);
  uint32_t count = 0;
  for (size_t group = 0; group < groups.size(); ++group) {
    if (groups[group].empty()) return absl::InvalidArgumentError(absl::StrCat("group ", group, " has no rank"));
    for (const uint32_t rank : groups[group]) {
      if (rank >= ranks) {
        return absl::InvalidArgumentError(
            absl::StrCat("group ", group, " names rank ", rank, ", but there are ", ranks, " ranks"));
      }
      if (seen[rank]) return absl::InvalidArgumentError(absl::StrCat("rank ", rank, " occurs twice in the groups"));
      seen[rank] = true;
      ++count;
    }
  }
  if (count == ranks) return absl::OkStatus();
  uint32_t missing = 0;
  while (seen[missing]) ++missing;
  return absl::InvalidArgumentError(absl::StrCat("rank ", missing, " is in no group"));
}

}  // namespace gleaner::collective
