#include "coordinator/planning/other_bits.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "absl/strings/str_join.h"
#include "common/plan/partitioner.h"
#include "common/plan/schedule_name.h"
#include "common/strategy/step.h"
#include "coordinator/planning/tensor_groups.h"

namespace gleaner::coordinator {
namespace {

using strategy::Candidate;
using strategy::TensorGroup;

struct Step {
  double seconds = 0;
  std::string strategies;
};

// Returns the step of new tensors in a class, each with the strategy that strategy::choose() gives it.
Step step_in(plan::Bits bits, const strategy::Models& all, std::vector<TensorGroup> groups) {
  const std::vector<Candidate> candidates = candidates_of(all.candidates, bits);
  std::vector<std::string> names;
  for (TensorGroup& group : groups) {
    const auto bytes = static_cast<uint64_t>(group.bytes);
    const strategy::NewTensor tensor{bytes, group.types, plan::default_partition_bytes(all.fleet, bytes)};
    group.strategy = group.is_fixed ? 0 : strategy::best(strategy::seconds_of_new(candidates, tensor));
    const Candidate& chosen = candidates[group.strategy];
    group.partition_bytes = static_cast<double>(strategy::partition_bytes_of(chosen, tensor));
    std::string name = name_of(chosen);
    if (!group.is_fixed && std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return {strategy::step_seconds(candidates, groups, strategy::in_force(groups)), absl::StrJoin(names, ", ")};
}

}  // namespace

std::vector<Candidate> candidates_of(std::span<const Candidate> all, plan::Bits bits) {
  std::vector<Candidate> kept;
  std::ranges::copy_if(all, std::back_inserter(kept), [bits](const Candidate& each) {
    return bits == plan::Bits::kSchedule || plan::bits_of(each.schedule) == bits;
  });
  return kept;
}

std::optional<OtherBits> compare_bits(const plan::Plan& plan, const strategy::Models& all) {
  if (!plan.bandwidths_known() || plan.workers == 1) return std::nullopt;
  const std::vector<TensorGroup> groups = group_tensors(plan, all.candidates).groups;
  if (std::ranges::all_of(groups, &TensorGroup::is_fixed)) return std::nullopt;
  const plan::Bits other = plan.bits == plan::Bits::kRankOrder ? plan::Bits::kSchedule : plan::Bits::kRankOrder;
  const Step in_other = step_in(other, all, groups);
  return OtherBits{other, in_other.seconds, step_in(plan.bits, all, groups).seconds, in_other.strategies};
}

}  // namespace gleaner::coordinator
