// The two halves of a staged all-reduce, for generators; each half is also a collective of its own (halves.h). Beside
// each other, the groups of a stage each reduce-scatter the slice that their members have in common; each member keeps
// the sum of one part of it. The all-gather runs the same stages backwards and copies.
#pragma once

#include <cstdint>
#include <vector>

#include "common/collective/schedule.h"
#include "common/collective/schedule_builder.h"

namespace gleaner::collective {

enum class ScatterKind {
  kRing,     // p - 1 steps, in each of which each member sends one part to the next member
  kHalving,  // log2(p) steps: exchanges half of the slice with the member whose index differs in one bit; p = 2^k
  kDirect,   // one step: each member sends each other member its part
};

struct ScatterStage {
  Groups groups;  // of equal size p
  ScatterKind kind = ScatterKind::kRing;
};

// Returns the groups of ranks whose numbers differ only in digit `stage` of a mixed radix system, whose digit 0 is the
// least significant and takes factors[0] values. Members are in the order of that digit.
Groups digit_groups(const std::vector<uint32_t>& factors, size_t stage);

// Adds the reduce-scatter by these stages, in this order. `kept`: by rank, the slice that its groups have in common
// before, and afterwards the slice of which it has the sum. Stages of one rank add nothing. Requires that the groups'
// sizes divide the number of chunks one after the other.
void add_scatter_stages(ScheduleBuilder& builder, const std::vector<ScatterStage>& stages, std::vector<Slice>& kept);

// Adds the all-gather by these stages, from the last to the first. `kept`: as add_scatter_stages() leaves it, and then
// the slice that the rank has.
void add_gather_stages(ScheduleBuilder& builder, const std::vector<ScatterStage>& stages, std::vector<Slice>& kept);

// Adds both, one after the other, to an all-reduce of the whole vector.
void add_staged_all_reduce(ScheduleBuilder& builder, uint32_t ranks, uint32_t chunks,
                           const std::vector<ScatterStage>& stages);

}  // namespace gleaner::collective
