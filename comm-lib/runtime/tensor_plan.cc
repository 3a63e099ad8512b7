#include "comm-lib/runtime/tensor_plan.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/plan/schedule_name.h"

namespace gleaner::runtime {

std::string tensor_plan(const plan::Plan& plan, uint32_t tensor) {
  static const collective::Spec kOwners{.algorithm = plan::kSummersStrategy};  // for the text alone
  const auto& index = plan.tensors[tensor].schedule;
  // Every algorithm of a schedule is known (Exchanges::apply), so its name needs no escapes.
  const collective::Spec& schedule = index.has_value() ? plan.schedules[*index] : kOwners;
  std::vector<uint32_t> partition_bytes, owners;
  for (const plan::Partition& partition : plan.partitions_of(tensor)) {
    partition_bytes.push_back(partition.bytes);
    owners.push_back(partition.owner);
  }
  return absl::StrCat(
      "{\"algorithm\": \"", schedule.algorithm, "\", \"stages\": [", absl::StrJoin(schedule.factors, ", "),
      "], \"radix\": ", schedule.radix, ", \"blocks\": ", schedule.blocks, ", \"ranks\": [",
      absl::StrJoin(schedule.rank_of, ", "), "], \"group_sizes\": [", absl::StrJoin(schedule.group_sizes, ", "),
      "], \"global_chunks\": [", absl::StrJoin(schedule.masters.global, ", "), "], \"local_chunks\": [",
      absl::StrJoin(schedule.masters.local, ", "), "], \"partition_bytes\": [", absl::StrJoin(partition_bytes, ", "),
      "], \"owners\": [", absl::StrJoin(owners, ", "), "], \"members\": [",
      absl::StrJoin(plan.tensors[tensor].group, ", "), "], \"from\": ", plan.tensors[tensor].schedule_from, "}");
}

}  // namespace gleaner::runtime
