#include "common/collective/direct.h"

#include "common/collective/schedule_builder.h"

namespace gleaner::collective {
namespace {

void add_all_to_all(ScheduleBuilder& builder, uint32_t ranks) {
  for (uint32_t ahead = 1; ahead < ranks; ++ahead) {
    for (uint32_t from = 0; from < ranks; ++from) {
      const uint32_t to = (from + ahead) % ranks;
      builder.transfer(from, to, {from * ranks + to, 1}, Take::kCopy);
    }
    builder.end_step();
  }
}

void add_all_gather(ScheduleBuilder& builder, uint32_t ranks) {
  for (uint32_t ahead = 1; ahead < ranks; ++ahead) {
    for (uint32_t from = 0; from < ranks; ++from) {
      builder.transfer(from, (from + ahead) % ranks, {from, 1}, Take::kCopy);
    }
    builder.end_step();
  }
}

// Between the root and all other ranks, in the order in which they follow the root.
void add_star(ScheduleBuilder& builder, const Collective& collective) {
  if (collective.ranks == 1) return;
  for (uint32_t ahead = 1; ahead < collective.ranks; ++ahead) {
    const uint32_t rank = (collective.root + ahead) % collective.ranks;
    const bool to_root = collective.postcondition == Postcondition::kGather;
    builder.transfer(to_root ? rank : collective.root, to_root ? collective.root : rank, {rank, 1}, Take::kCopy);
  }
  builder.end_step();
}

}  // namespace

Schedule direct(const Collective& collective, OnlyRank only) {
  ScheduleBuilder builder("direct", collective, collective.blocks(), only);
  if (collective.postcondition == Postcondition::kAllToAll) {
    add_all_to_all(builder, collective.ranks);
  } else if (collective.postcondition == Postcondition::kAllGather) {
    add_all_gather(builder, collective.ranks);
  } else {
    add_star(builder, collective);
  }
  return builder.take();
}

}  // namespace gleaner::collective
