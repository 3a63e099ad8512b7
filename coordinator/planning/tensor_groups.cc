#include "coordinator/planning/tensor_groups.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace gleaner::coordinator {
namespace {

// Returns the index of the candidate that sums the tensor.
size_t strategy_of(const plan::Tensor& tensor, const plan::Plan& plan,
                   std::span<const strategy::Candidate> candidates) {
  if (!tensor.schedule.has_value()) return 0;
  const auto found = std::ranges::find(candidates, plan.schedules[*tensor.schedule], &strategy::Candidate::schedule);
  return found == candidates.end() ? 0 : static_cast<size_t>(found - candidates.begin());
}

double largest_partition(const plan::Plan& plan, uint32_t tensor) {
  uint32_t largest = 0;
  for (const plan::Partition& partition : plan.partitions_of(tensor)) largest = std::max(largest, partition.bytes);
  return largest;
}

}  // namespace

TensorGroups group_tensors(const plan::Plan& plan, std::span<const strategy::Candidate> candidates) {
  TensorGroups made;
  std::map<std::tuple<uint64_t, DataType, DataType, size_t, bool>, size_t> indices;  // of groups
  for (uint32_t id = 0; id < plan.tensors.size(); ++id) {
    const plan::Tensor& tensor = plan.tensors[id];
    const size_t strategy = strategy_of(tensor, plan, candidates);
    const plan::Encoding types = plan.encoding(tensor);
    const auto [found, is_new] = indices.try_emplace(
        {tensor.bytes(), types.contribution, types.result, strategy, !tensor.may_have_schedule()}, made.groups.size());
    if (is_new) {
      made.groups.push_back({.bytes = static_cast<double>(tensor.bytes()),
                             .partition_bytes = largest_partition(plan, id),
                             .strategy = strategy,
                             .is_fixed = !tensor.may_have_schedule() || tensor.elements == 0,
                             .types = types});
    }
    ++made.groups[found->second].per_step;
    made.of_tensor.push_back(found->second);
  }
  return made;
}

void scale_to(double bytes_per_step, std::vector<strategy::TensorGroup>& groups) {
  double bytes = 0;
  for (const strategy::TensorGroup& group : groups) bytes += group.bytes * group.per_step;
  if (!(bytes > 0)) return;
  for (strategy::TensorGroup& group : groups) group.per_step *= bytes_per_step / bytes;
}

}  // namespace gleaner::coordinator
