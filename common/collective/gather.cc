#include "common/collective/gather.h"

#include <algorithm>

#include "common/collective/schedule_builder.h"

namespace gleaner::collective {

Schedule gather(uint32_t ranks, OnlyRank only) {
  ScheduleBuilder builder("gather", {ranks, Postcondition::kAllGather}, ranks, only);
  for (uint32_t has = 1; has < ranks; has *= 2) {
    const uint32_t count = std::min(has, ranks - has);
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const uint32_t to = (rank + ranks - has) % ranks;
      const uint32_t before_end = std::min(count, ranks - rank);
      builder.transfer(rank, to, {rank, before_end}, Take::kCopy);
      builder.transfer(rank, to, {0, count - before_end}, Take::kCopy);
    }
    builder.end_step();
  }
  return builder.take();
}

}  // namespace gleaner::collective
