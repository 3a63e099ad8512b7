#include "coordinator/failures/suspects.h"

#include <algorithm>

namespace gleaner::coordinator {

std::set<uint32_t> find_suspects(const Options& options, const Roster& roster, uint32_t culprit, absl::Duration now) {
  absl::Duration before = now - std::min(kSilent, options.deadline / 2);
  if (roster[culprit].takes_part()) before = std::min(before, roster[culprit].last_heard);
  std::set<uint32_t> suspects;
  for (uint32_t seat = 0; seat < roster.ranks(); ++seat) {
    const Seat& rank = roster[seat];
    if (rank.takes_part() && rank.last_heard < before && seat != culprit) suspects.insert(seat);
  }
  return suspects;
}

}  // namespace gleaner::coordinator
