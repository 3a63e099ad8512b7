#include "common/collective/racks.h"

#include <vector>

#include "common/collective/scatter.h"
#include "common/collective/schedule_builder.h"

namespace gleaner::collective {

Schedule racks(uint32_t ranks, const Groups& groups, OnlyRank only) {
  const uint32_t count = static_cast<uint32_t>(groups.size());
  ScheduleBuilder builder("racks", {ranks}, count, only);
  std::vector<uint32_t> masters;
  for (const std::vector<uint32_t>& group : groups) masters.push_back(group[0]);
  builder.add_stage(groups);
  builder.add_stage({masters});
  const auto within_racks = [&](bool back) {
    if (count == ranks) return;
    for (const std::vector<uint32_t>& group : groups) {
      for (size_t i = 1; i < group.size(); ++i) {
        if (back) builder.transfer(group[0], group[i], Slice{0, count}, Take::kCopy);
        if (!back) builder.transfer(group[i], group[0], Slice{0, count}, Take::kReduce);
      }
    }
    builder.end_step();
  };
  within_racks(false);
  add_staged_all_reduce(builder, ranks, count, {{{masters}, ScatterKind::kRing}});
  within_racks(true);
  return builder.take();
}

}  // namespace gleaner::collective
