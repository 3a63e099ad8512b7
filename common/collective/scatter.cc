#include "common/collective/scatter.h"

namespace gleaner::collective {
namespace {

// One half of the all-reduce. `kept[rank]` is the slice of which a rank has the sum of the stages so far.
class Half {
 public:
  Half(ScheduleBuilder& builder, Take take, std::vector<Slice>& kept) : builder_(builder), take_(take), kept_(kept) {}

  // Each member sends a part of the slice to the next member. After p - 1 steps member i has the sum of part i.
  void ring_scatter(const Groups& groups, uint32_t size) {
    for (uint32_t step = 0; step + 1 < size; ++step) {
      ring_step(groups, size, [&](uint32_t i) { return (i + 2 * size - 1 - step) % size; });
    }
    narrow(groups, size);
  }
  void ring_gather(const Groups& groups, uint32_t size) {
    widen(groups, size);
    for (uint32_t step = 0; step + 1 < size; ++step) {
      ring_step(groups, size, [&](uint32_t i) { return (i + size - step) % size; });
    }
  }

  void direct_scatter(const Groups& groups, uint32_t size) {
    direct_step(groups, size, [](uint32_t, uint32_t to) { return to; });
    narrow(groups, size);
  }
  void direct_gather(const Groups& groups, uint32_t size) {
    widen(groups, size);
    direct_step(groups, size, [](uint32_t from, uint32_t) { return from; });
  }

  void halving_scatter(const Groups& groups, uint32_t size) {
    for (uint32_t distance = 1; distance < size; distance *= 2) {
      for (const std::vector<uint32_t>& group : groups) {
        for (uint32_t i = 0; i < size; ++i) {
          const bool keeps_lower = (i & distance) == 0;
          builder_.transfer(group[i], group[i ^ distance], part(kept_[group[i]], keeps_lower ? 1 : 0, 2), take_);
        }
        for (uint32_t i = 0; i < size; ++i) {
          kept_[group[i]] = part(kept_[group[i]], (i & distance) == 0 ? 0 : 1, 2);
        }
      }
      builder_.end_step();
    }
  }
  void doubling_gather(const Groups& groups, uint32_t size) {
    for (uint32_t distance = size / 2; distance > 0; distance /= 2) {
      for (const std::vector<uint32_t>& group : groups) {
        for (uint32_t i = 0; i < size; ++i) {
          builder_.transfer(group[i], group[i ^ distance], kept_[group[i]], take_);
        }
        for (uint32_t i = 0; i < size; ++i) kept_[group[i]] = whole(kept_[group[i]], (i & distance) == 0 ? 0 : 1, 2);
      }
      builder_.end_step();
    }
  }

 private:
  // Part i of p equal parts of a slice, and the slice of which `slice` is part i.
  static Slice part(const Slice& slice, uint32_t i, uint32_t parts) {
    return {slice.first + i * (slice.count / parts), slice.count / parts};
  }
  static Slice whole(const Slice& slice, uint32_t i, uint32_t parts) {
    return {slice.first - i * slice.count, slice.count * parts};
  }
  void narrow(const Groups& groups, uint32_t size) {
    for (const std::vector<uint32_t>& group : groups) {
      for (uint32_t i = 0; i < size; ++i) kept_[group[i]] = part(kept_[group[i]], i, size);
    }
  }
  void widen(const Groups& groups, uint32_t size) {
    for (const std::vector<uint32_t>& group : groups) {
      for (uint32_t i = 0; i < size; ++i) kept_[group[i]] = whole(kept_[group[i]], i, size);
    }
  }
  // `sent(i)`: the part that member i sends.
  template <typename Sent>
  void ring_step(const Groups& groups, uint32_t size, Sent sent) {
    for (const std::vector<uint32_t>& group : groups) {
      for (uint32_t i = 0; i < size; ++i) {
        builder_.transfer(group[i], group[(i + 1) % size], part(kept_[group[i]], sent(i), size), take_);
      }
    }
    builder_.end_step();
  }
  // `sent(from, to)`: the part that one member sends to another.
  template <typename Sent>
  void direct_step(const Groups& groups, uint32_t size, Sent sent) {
    for (const std::vector<uint32_t>& group : groups) {
      for (uint32_t ahead = 1; ahead < size; ++ahead) {  // each member begins with another peer
        for (uint32_t i = 0; i < size; ++i) {
          const uint32_t to = (i + ahead) % size;
          builder_.transfer(group[i], group[to], part(kept_[group[i]], sent(i, to), size), take_);
        }
      }
    }
    builder_.end_step();
  }

  ScheduleBuilder& builder_;
  const Take take_;
  std::vector<Slice>& kept_;  // by rank
};

}  // namespace

Groups digit_groups(const std::vector<uint32_t>& factors, size_t stage) {
  uint32_t ranks = 1, distance = 1;
  for (size_t i = 0; i < factors.size(); ++i) {
    ranks *= factors[i];
    if (i < stage) distance *= factors[i];
  }
  Groups groups;
  for (uint32_t first = 0; first < ranks; ++first) {
    if (first / distance % factors[stage] != 0) continue;
    std::vector<uint32_t>& group = groups.emplace_back();
    for (uint32_t digit = 0; digit < factors[stage]; ++digit) group.push_back(first + digit * distance);
  }
  return groups;
}

void add_scatter_stages(ScheduleBuilder& builder, const std::vector<ScatterStage>& stages, std::vector<Slice>& kept) {
  Half half(builder, Take::kReduce, kept);
  for (const ScatterStage& stage : stages) {
    const uint32_t size = static_cast<uint32_t>(stage.groups[0].size());
    if (size == 1) continue;
    if (stage.kind == ScatterKind::kRing) half.ring_scatter(stage.groups, size);
    if (stage.kind == ScatterKind::kHalving) half.halving_scatter(stage.groups, size);
    if (stage.kind == ScatterKind::kDirect) half.direct_scatter(stage.groups, size);
  }
}

void add_gather_stages(ScheduleBuilder& builder, const std::vector<ScatterStage>& stages, std::vector<Slice>& kept) {
  Half half(builder, Take::kCopy, kept);
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    const uint32_t size = static_cast<uint32_t>(stage->groups[0].size());
    if (size == 1) continue;
    if (stage->kind == ScatterKind::kRing) half.ring_gather(stage->groups, size);
    if (stage->kind == ScatterKind::kHalving) half.doubling_gather(stage->groups, size);
    if (stage->kind == ScatterKind::kDirect) half.direct_gather(stage->groups, size);
  }
}

void add_staged_all_reduce(ScheduleBuilder& builder, uint32_t ranks, uint32_t chunks,
                           const std::vector<ScatterStage>& stages) {
  std::vector<Slice> kept(ranks, {0, chunks});
  add_scatter_stages(builder, stages, kept);
  add_gather_stages(builder, stages, kept);
}

}  // namespace gleaner::collective
