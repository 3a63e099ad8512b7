#include "common/collective/halves.h"

#include <bit>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/collective/schedule_builder.h"

namespace gleaner::collective {
namespace {

const char* kind_name(ScatterKind kind) {
  switch (kind) {
    case ScatterKind::kRing:
      return "ring";
    case ScatterKind::kHalving:
      return "halving";
    case ScatterKind::kDirect:
      return "direct";
  }
  return "unknown";
}

// Returns the numbers below 2^k in the order of their bits read backwards. A halving stage (scatter.h) leaves member i
// with the part whose number has the bits of i backwards.
std::vector<uint32_t> bits_reversed(uint32_t count) {
  std::vector<uint32_t> numbers = {0};
  for (uint32_t bit = count / 2; bit > 0; bit /= 2) {
    const size_t size = numbers.size();
    for (size_t i = 0; i < size; ++i) numbers.push_back(numbers[i] + bit);
  }
  return numbers;
}

}  // namespace

absl::StatusOr<Schedule> reduce_scatter(uint32_t ranks, ScatterKind kind, OnlyRank only) {
  if (kind == ScatterKind::kHalving && !std::has_single_bit(ranks)) {
    return absl::InvalidArgumentError(absl::StrCat("halving needs a power of two as the number of ranks; ", ranks,
                                                   " is none: give the algorithm ring or direct"));
  }
  std::vector<uint32_t> members(ranks);
  std::iota(members.begin(), members.end(), 0);
  if (kind == ScatterKind::kHalving) members = bits_reversed(ranks);
  ScheduleBuilder builder(kind_name(kind), {ranks, Postcondition::kReduceScatter}, ranks, only);
  std::vector<Slice> kept(ranks, {0, ranks});
  add_scatter_stages(builder, {{{members}, kind}}, kept);
  return builder.take();
}

Schedule ring_all_gather(uint32_t ranks, OnlyRank only) {
  std::vector<uint32_t> members(ranks);
  std::iota(members.begin(), members.end(), 0);
  ScheduleBuilder builder("ring", {ranks, Postcondition::kAllGather}, ranks, only);
  std::vector<Slice> kept;
  for (uint32_t rank = 0; rank < ranks; ++rank) kept.push_back({rank, 1});
  add_gather_stages(builder, {{{members}, ScatterKind::kRing}}, kept);
  return builder.take();
}

}  // namespace gleaner::collective
