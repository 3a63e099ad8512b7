#include "summation-service/engine/groups.h"

#include <algorithm>
#include <map>

#include "summation-service/engine/gathering_sums.h"

namespace gleaner::engine {

std::vector<uint32_t> groups_of(const plan::Plan& plan) {
  std::map<std::vector<uint32_t>, uint32_t> numbers = {{{}, 0}};
  std::vector<uint32_t> groups;
  groups.reserve(plan.tensors.size());
  for (const plan::Tensor& tensor : plan.tensors) {
    groups.push_back(numbers.try_emplace(tensor.group, static_cast<uint32_t>(numbers.size())).first->second);
  }
  return groups;
}

std::vector<uint64_t> largest_sums(const plan::Plan& plan, const std::vector<uint32_t>& groups, uint32_t self) {
  std::vector<uint64_t> largest(groups.empty() ? 1 : *std::ranges::max_element(groups) + 1);
  for (const plan::Partition& partition : plan.partitions) {
    const plan::Tensor& tensor = plan.tensors[partition.tensor];
    if (partition.owner != self || tensor.accumulates) continue;
    uint64_t& of_group = largest[groups[partition.tensor]];
    of_group = std::max(
        of_group, GatheringSums::memory_of(plan.contributors(tensor), plan.push_bytes(partition), partition.bytes));
  }
  return largest;
}

}  // namespace gleaner::engine
