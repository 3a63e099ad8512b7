#include "common/collective/binomial.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "common/collective/scatter.h"
#include "common/collective/schedule_builder.h"

namespace gleaner::collective {
namespace {

// Numbers ranks from the root on.
uint32_t rank_of(uint32_t number, const Collective& collective) {
  return (number + collective.root) % collective.ranks;
}

// Adds a step for each level of the tree. `transfer(child, parent, last)`: the subtree of `child` has the numbers
// child … last - 1.
template <typename Transfer>
void add_levels(ScheduleBuilder& builder, uint32_t ranks, bool to_root, Transfer transfer) {
  const auto levels = static_cast<uint32_t>(std::bit_width(ranks - 1));
  for (uint32_t step = 0; step < levels; ++step) {
    const uint32_t distance = 1u << (to_root ? step : levels - 1 - step);
    for (uint32_t child = distance; child < ranks; child += 2 * distance) {
      transfer(child, child - distance, std::min(child + distance, ranks));
    }
    builder.end_step();
  }
}

}  // namespace

Schedule binomial(const Collective& collective, OnlyRank only) {
  const bool to_root =
      collective.postcondition == Postcondition::kReduce || collective.postcondition == Postcondition::kGather;
  const Take take = collective.adds() ? Take::kReduce : Take::kCopy;
  const bool is_whole =
      collective.postcondition == Postcondition::kReduce || collective.postcondition == Postcondition::kBroadcast;
  const uint32_t chunks = collective.blocks();
  ScheduleBuilder builder("binomial", collective, chunks, only);
  add_levels(builder, collective.ranks, to_root, [&](uint32_t child, uint32_t parent, uint32_t last) {
    const uint32_t from = rank_of(to_root ? child : parent, collective);
    const uint32_t to = rank_of(to_root ? parent : child, collective);
    if (is_whole) return builder.transfer(from, to, {0, 1}, take);
    const uint32_t first = rank_of(child, collective), count = last - child;
    const uint32_t before_end = std::min(count, collective.ranks - first);
    builder.transfer(from, to, {first, before_end}, take);
    builder.transfer(from, to, {0, count - before_end}, take);
  });
  return builder.take();
}

Schedule scatter_ring(const Collective& broadcast, OnlyRank only) {
  const uint32_t ranks = broadcast.ranks;
  ScheduleBuilder builder("scatter-ring", broadcast, ranks, only);
  add_levels(builder, ranks, false, [&](uint32_t child, uint32_t parent, uint32_t last) {
    builder.transfer(rank_of(parent, broadcast), rank_of(child, broadcast), {child, last - child}, Take::kCopy);
  });
  std::vector<uint32_t> ring(ranks);
  std::vector<Slice> kept(ranks);
  for (uint32_t number = 0; number < ranks; ++number) {
    ring[number] = rank_of(number, broadcast);
    kept[ring[number]] = {number, 1};
  }
  add_gather_stages(builder, {{{ring}, ScatterKind::kRing}}, kept);
  return builder.take();
}

}  // namespace gleaner::collective
