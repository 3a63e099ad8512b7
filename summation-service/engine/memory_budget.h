// MemoryBudget limits the memory for sums, retained results and waiting contributions, and counts how much of it is
// reserved. All sizes are bytes of whole memory blocks (block_size()).
//
// Each group of workers (plan::Tensor::group) has a *least*, the memory of its largest sum, which other groups can't
// take. So a sum of a group is never deferred until sums of other groups are complete, whose workers may wait for it.
// Groups are numbered as by groups.h; group 0 is that of all workers. A group that a plan brings has its least from
// then on, also while other groups have reserved more than the cap leaves. So the cap may be exceeded for a while, by
// the leasts of new groups.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gleaner::engine {

class MemoryBudget {
 public:
  explicit MemoryBudget(uint64_t cap) : cap_(cap), groups_(1) {}  // 0: no cap

  // Returns whether `bytes` could be reserved if nothing else was.
  bool can_ever_fit(uint64_t bytes) const { return cap_ == 0 || bytes <= cap_; }

  // Sets the least of each group. Later calls have all groups of earlier ones.
  void set_least(const std::vector<uint64_t>& least) {
    groups_.resize(std::max(groups_.size(), least.size()));
    kept_ = 0;
    for (size_t i = 0; i < least.size(); ++i) {
      groups_[i].least = least[i];
      kept_ += groups_[i].kept();
    }
  }

  // Returns whether a group can reserve `bytes` more now.
  bool has_room(uint32_t group, uint64_t bytes) const {
    const Group& own = groups_[group];
    return own.reserved + bytes <= own.least || can_ever_fit(reserved_ + bytes + kept_ - own.kept());
  }
  // Reserves `bytes` for a group. Needs has_room().
  void reserve(uint32_t group, uint64_t bytes) { change(group, groups_[group].reserved + bytes); }
  // Gives back bytes that the group has reserved before.
  void release(uint32_t group, uint64_t bytes) { change(group, groups_[group].reserved - bytes); }

  uint64_t cap() const { return cap_; }
  uint64_t reserved() const { return reserved_; }

 private:
  struct Group {
    uint64_t least = 0;
    uint64_t reserved = 0;
    uint64_t kept() const { return least > reserved ? least - reserved : 0; }  // for later sums of the group
  };

  void change(uint32_t group, uint64_t reserved) {
    Group& own = groups_[group];
    kept_ -= own.kept();
    reserved_ += reserved - own.reserved;  // modulo 2^64, so it may also fall
    own.reserved = reserved;
    kept_ += own.kept();
  }

  const uint64_t cap_;
  std::vector<Group> groups_;
  uint64_t reserved_ = 0;  // by all groups
  uint64_t kept_ = 0;      // for all groups
};

}  // namespace gleaner::engine
