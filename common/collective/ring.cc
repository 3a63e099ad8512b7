#include "common/collective/ring.h"

#include "common/collective/schedule_builder.h"

namespace gleaner::collective {

Schedule ring(uint32_t ranks, OnlyRank only) {
  ScheduleBuilder builder("ring", {ranks}, ranks, only);
  for (uint32_t step = 0; step + 1 < 2 * ranks - 1; ++step) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      const uint32_t chunk = (rank + 2 * ranks - step) % ranks;
      builder.transfer(rank, (rank + 1) % ranks, {chunk, 1}, step < ranks - 1 ? Take::kReduce : Take::kCopy);
    }
    builder.end_step();
  }
  return builder.take();
}

}  // namespace gleaner::collective
