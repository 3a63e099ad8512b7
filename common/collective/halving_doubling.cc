#include "common/collective/halving_doubling.h"

#include <bit>
#include <vector>

#include "common/collective/schedule_builder.h"

namespace gleaner::collective {

Schedule halving_doubling(uint32_t ranks, OnlyRank only) {
  const uint32_t core = std::bit_floor(ranks);
  const uint32_t extra = ranks - core;  // ranks that only hand their vector over
  ScheduleBuilder builder("halving-doubling", {ranks}, core, only);
  const Slice whole = {0, core};
  // The rank of the core's member i.
  const auto rank_of = [extra](uint32_t i) { return i < extra ? 2 * i : i + extra; };
  const auto hand_over = [&](bool back) {
    if (extra == 0) return;
    for (uint32_t i = 0; i < extra; ++i) {
      const uint32_t even = 2 * i, odd = 2 * i + 1;
      if (back) builder.transfer(even, odd, whole, Take::kCopy);
      if (!back) builder.transfer(odd, even, whole, Take::kReduce);
    }
    builder.end_step();
  };

  hand_over(false);
  std::vector<Slice> kept(core, whole);  // what each member still sums
  for (uint32_t distance = 1; distance < core; distance *= 2) {
    for (uint32_t i = 0; i < core; ++i) {
      const uint32_t half = kept[i].count / 2;
      const Slice lower = {kept[i].first, half}, upper = {kept[i].first + half, half};
      const bool keeps_lower = (i & distance) == 0;
      builder.transfer(rank_of(i), rank_of(i ^ distance), keeps_lower ? upper : lower, Take::kReduce);
      kept[i] = keeps_lower ? lower : upper;
    }
    builder.end_step();
  }
  for (uint32_t distance = core / 2; distance > 0; distance /= 2) {
    for (uint32_t i = 0; i < core; ++i) {
      builder.transfer(rank_of(i), rank_of(i ^ distance), kept[i], Take::kCopy);
    }
    for (uint32_t i = 0; i < core; ++i) {
      if ((i & distance) != 0) kept[i].first -= kept[i].count;
      kept[i].count *= 2;
    }
    builder.end_step();
  }
  hand_over(true);
  return builder.take();
}

}  // namespace gleaner::collective
