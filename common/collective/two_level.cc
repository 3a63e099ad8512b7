#include "common/collective/two_level.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/collective/schedule_builder.h"

namespace gleaner::collective {
namespace {

constexpr uint64_t kMaxChunks = 1 << 16;

struct Masters {
  std::vector<uint32_t> global_group;        // by chunk: the group of its global master
  std::vector<std::vector<uint32_t>> local;  // by group, then chunk: its local master, a rank
};

// Numbers the chunks by the index of their global masters in their groups, then by group. So the chunks of a local
// master follow each other, if groups have equal sizes.
Masters assign(uint32_t ranks, const Groups& groups) {
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

// Numbers the chunks by their global masters. In every other group, the members take consecutive ones of the chunks
// whose global master is elsewhere.
Masters assign(const MasterCounts& counts, const Groups& groups) {
  Masters masters;
  masters.local.resize(groups.size());
  for (uint32_t global = 0; global < groups.size(); ++global) {
    for (const uint32_t rank : groups[global]) {
      masters.global_group.insert(masters.global_group.end(), counts.global[rank], global);
      masters.local[global].insert(masters.local[global].end(), counts.global[rank], rank);
    }
    std::vector<uint32_t> foreign;
    for (const uint32_t rank : groups[global]) {
      foreign.insert(foreign.end(), counts.local[rank] - counts.global[rank], rank);
    }
    // The chunks of earlier groups come first, then the group's own, then those of later groups.
    const auto own = std::accumulate(groups[global].begin(), groups[global].end(), size_t{0},
                                     [&](size_t sum, uint32_t rank) { return sum + counts.global[rank]; });
    const auto before = static_cast<std::ptrdiff_t>(masters.global_group.size() - own);
    masters.local[global].insert(masters.local[global].begin(), foreign.begin(), foreign.begin() + before);
    masters.local[global].insert(masters.local[global].end(), foreign.begin() + before, foreign.end());
  }
  return masters;
}

class TwoLevel {
 public:
  TwoLevel(uint32_t ranks, const Groups& groups, Masters masters, OnlyRank only)
      : groups_(groups),
        masters_(std::move(masters)),
        builder_("two-level", {ranks}, static_cast<uint32_t>(masters_.global_group.size()), only) {
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
      for (uint32_t chunk = 0; chunk < chunks(); ++chunk) chunks_[masters_.local[g][chunk]].push_back(chunk);
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
    for (uint32_t first = 0; first < chunks(); first = end_of(first)) {
      const uint32_t global_group = masters_.global_group[first];
      const uint32_t global_master = masters_.local[global_group][first];
      for (size_t g = 0; g < groups_.size(); ++g) {
        if (g == global_group) continue;
        std::vector<uint32_t> run;  // chunks with one local master
        for (uint32_t chunk = first; chunk < end_of(first); ++chunk) {
          const uint32_t master = masters_.local[g][chunk];
          run.push_back(chunk);
          if (chunk + 1 < end_of(first) && masters_.local[g][chunk + 1] == master) continue;
          transfer(master, global_master, run, back);
          run.clear();
        }
      }
    }
    builder_.end_step();
  }

  uint32_t chunks() const { return static_cast<uint32_t>(masters_.global_group.size()); }
  // Returns the end of the chunks from `first` on that have the same global master.
  uint32_t end_of(uint32_t first) const {
    const auto global_master = [&](uint32_t chunk) { return masters_.local[masters_.global_group[chunk]][chunk]; };
    uint32_t end = first + 1;
    while (end < chunks() && global_master(end) == global_master(first)) ++end;
    return end;
  }

  void transfer(uint32_t member, uint32_t master, const std::vector<uint32_t>& chunks, bool back) {
    if (back) builder_.transfer_chunks(master, member, chunks, Take::kCopy);
    if (!back) builder_.transfer_chunks(member, master, chunks, Take::kReduce);
  }

  const Groups& groups_;
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

absl::Status check_masters(const MasterCounts& counts, uint32_t ranks, const Groups& groups) {
  const auto wrong = [](const auto&... parts) { return absl::InvalidArgumentError(absl::StrCat(parts...)); };
  if (counts.global.size() != ranks || counts.local.size() != ranks) {
    return wrong("there are ", counts.global.size(), " numbers of global and ", counts.local.size(),
                 " of local chunks; give one for each of ", ranks, " ranks");
  }
  const uint64_t chunks = std::accumulate(counts.global.begin(), counts.global.end(), uint64_t{0});
  if (chunks == 0 || chunks > kMaxChunks) {
    return wrong("the ranks are global masters of ", chunks, " chunks; give 1 to ", kMaxChunks);
  }
  for (const std::vector<uint32_t>& group : groups) {
    uint64_t local = 0;
    for (const uint32_t rank : group) {
      local += counts.local[rank];
      if (counts.global[rank] <= counts.local[rank]) continue;
      return wrong("rank ", rank, " is the global master of ", counts.global[rank], " chunks and a local master of ",
                   counts.local[rank], "; a global master is a local master, too");
    }
    if (local != chunks) {
      return wrong("the group of rank ", group.front(), " has local masters for ", local, " chunks; there are ",
                   chunks);
    }
  }
  return absl::OkStatus();
}

Schedule two_level(uint32_t ranks, const Groups& groups, const MasterCounts* counts, OnlyRank only) {
  return TwoLevel(ranks, groups, counts == nullptr ? assign(ranks, groups) : assign(*counts, groups), only).make();
}

}  // namespace gleaner::collective
