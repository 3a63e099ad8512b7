#include "common/collective/two_level.h"

#include <algorithm>
#include <vector>

#include "common/collective/schedule_builder.h"

namespace gleaner::collective {
namespace {

struct Masters {
  std::vector<uint32_t> global_group;        // by chunk: the group of its global master
  std::vector<std::vector<uint32_t>> local;  // by group, then chunk: its local master, a rank
};

// Numbers the chunks by the index of their global masters in their groups, then by group. So the chunks of a local
// master follow each other, if groups have equal sizes.
Masters assign(uint32_t ranks, const Stage& groups) {
  Masters masters;
  masters.local.resize(groups.size());
  std::vector<uint32_t> foreign(groups.size(), 0);  // by group: its chunks so far whose global master is elsewhere
  size_t largest = 0;
  for (const std::vector<uint32_t>& group : groups) largest = std::max(largest, group.size());
  for (size_t index = 0; index < largest; ++index) {
    for (uint32_t global = 0; global < groups.size(); ++global) {
      if (index >= groups[global].size()) continue;
      masters.global_group.push_back(global);
      for (uint32_t g = 0; g < groups.size(); ++g) {
        const uint64_t size = groups[g].size();
        const uint64_t member = g == global ? index : foreign[g]++ * size / (ranks - size);
        masters.local[g].push_back(groups[g][member]);
      }
    }
  }
  return masters;
}

class TwoLevel {
 public:
  TwoLevel(uint32_t ranks, const Stage& groups)
      : groups_(groups), masters_(assign(ranks, groups)), builder_("two-level", ranks, ranks) {
    builder_.add_stage(groups);
    chunks_.resize(ranks);
  }

  Schedule make() {
    within_groups(false);
    across_groups(false);
    across_groups(true);
    within_groups(true);
    return builder_.take();
  }

 private:
  // Between the members of a group and its local masters.
  void within_groups(bool back) {
    if (groups_.size() == chunks_.size()) return;  // groups of one rank
    for (size_t g = 0; g < groups_.size(); ++g) {
      for (const uint32_t member : groups_[g]) chunks_[member].clear();
      for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) chunks_[masters_.local[g][chunk]].push_back(chunk);
      for (const uint32_t master : groups_[g]) {
        for (const uint32_t member : groups_[g]) {
          if (member != master) transfer(member, master, chunks_[master], back);
        }
      }
    }
    builder_.end_step();
  }

  // Between the local masters and the global master of each chunk.
  void across_groups(bool back) {
    if (groups_.size() == 1) return;
    for (uint32_t chunk = 0; chunk < chunks_.size(); ++chunk) {
      const uint32_t global_group = masters_.global_group[chunk];
      for (size_t g = 0; g < groups_.size(); ++g) {
        if (g == global_group) continue;
        transfer(masters_.local[g][chunk], masters_.local[global_group][chunk], {chunk}, back);
      }
    }
    builder_.end_step();
  }

  void transfer(uint32_t member, uint32_t master, const std::vector<uint32_t>& chunks, bool back) {
    if (back) builder_.transfer_chunks(master, member, chunks, OpKind::kReceiveCopy);
    if (!back) builder_.transfer_chunks(member, master, chunks, OpKind::kReceiveReduce);
  }

  const Stage& groups_;
  const Masters masters_;
  ScheduleBuilder builder_;
  std::vector<std::vector<uint32_t>> chunks_;  // by rank: chunks of which it is a local master
};

}  // namespace

uint32_t default_groups(uint32_t ranks) {
  uint32_t groups = 1;
  while (uint64_t{groups + 1} * (groups + 1) <= ranks) ++groups;
  return groups;
}

Schedule two_level(uint32_t ranks, const Stage& groups) { return TwoLevel(ranks, groups).make(); }

}  // namespace gleaner::collective
