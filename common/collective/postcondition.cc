#include "common/collective/postcondition.h"

#include <algorithm>
#include <iterator>

namespace gleaner::collective {
namespace {

constexpr Postcondition kPostconditions[] = {
    Postcondition::kAllReduce,     Postcondition::kReduce, Postcondition::kBroadcast, Postcondition::kAllGather,
    Postcondition::kReduceScatter, Postcondition::kGather, Postcondition::kScatter,   Postcondition::kAllToAll};

}  // namespace

std::span<const Postcondition> postconditions() { return kPostconditions; }

absl::string_view name_of(Postcondition postcondition) {
  switch (postcondition) {
    case Postcondition::kAllReduce:
      return "all-reduce";
    case Postcondition::kReduce:
      return "reduce";
    case Postcondition::kBroadcast:
      return "broadcast";
    case Postcondition::kAllGather:
      return "all-gather";
    case Postcondition::kReduceScatter:
      return "reduce-scatter";
    case Postcondition::kGather:
      return "gather";
    case Postcondition::kScatter:
      return "scatter";
    case Postcondition::kAllToAll:
      return "all-to-all";
  }
  return "unknown";
}

std::optional<Postcondition> postcondition_named(absl::string_view name) {
  const auto* const found =
      std::ranges::find_if(kPostconditions, [&](Postcondition each) { return name_of(each) == name; });
  if (found == std::end(kPostconditions)) return std::nullopt;
  return *found;
}

bool has_root(Postcondition postcondition) {
  return postcondition == Postcondition::kReduce || postcondition == Postcondition::kBroadcast ||
         postcondition == Postcondition::kGather || postcondition == Postcondition::kScatter;
}

uint32_t Collective::blocks() const {
  switch (postcondition) {
    case Postcondition::kAllReduce:
    case Postcondition::kReduce:
    case Postcondition::kBroadcast:
      return 1;
    case Postcondition::kAllGather:
    case Postcondition::kReduceScatter:
    case Postcondition::kGather:
    case Postcondition::kScatter:
      return ranks;
    case Postcondition::kAllToAll:
      return ranks * ranks;
  }
  return 1;
}

std::optional<uint32_t> Collective::contributor(uint32_t block) const {
  switch (postcondition) {
    case Postcondition::kAllReduce:
    case Postcondition::kReduce:
    case Postcondition::kReduceScatter:
      return std::nullopt;
    case Postcondition::kBroadcast:
    case Postcondition::kScatter:
      return root;
    case Postcondition::kAllGather:
    case Postcondition::kGather:
      return block;
    case Postcondition::kAllToAll:
      return block / ranks;
  }
  return std::nullopt;
}

bool Collective::ends_with(uint32_t rank, uint32_t block) const {
  switch (postcondition) {
    case Postcondition::kAllReduce:
    case Postcondition::kBroadcast:
    case Postcondition::kAllGather:
      return true;
    case Postcondition::kReduce:
    case Postcondition::kGather:
      return rank == root;
    case Postcondition::kReduceScatter:
    case Postcondition::kScatter:
      return block == rank;
    case Postcondition::kAllToAll:
      return block % ranks == rank;
  }
  return true;
}

}  // namespace gleaner::collective
