#include "comm-lib/runtime/tensor_plan.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/plan/schedule_name.h"

namespace gleaner::runtime {

std::string tensor_plan(const plan::Plan& plan, uint32_t tensor) {
  static const plan::ScheduleParameters kOwners{.algorithm = plan::kSummersStrategy};
  const auto& index = plan.tensors[tensor].schedule;
  // Every algorithm of a schedule is known (Exchanges::apply), so its name needs no escapes.
  const plan::ScheduleParameters& schedule = index.has_value() ? plan.schedules[*index] : kOwners;
  std::vector<uint32_t> partition_bytes;
  for (const plan::Partition& partition : plan.partitions_of(tensor)) partition_bytes.push_back(partition.bytes);
  return absl::StrCat("{\"algorithm\": \"", schedule.algorithm, "\", \"stages\": [",
                      absl::StrJoin(schedule.stages, ", "), "], \"radix\": ", schedule.radix, ", \"ranks\": [",
                      absl::StrJoin(schedule.ranks, ", "), "], \"identity_seconds\": ", schedule.identity_seconds,
                      ", \"mapped_seconds\": ", schedule.mapped_seconds, ", \"group_sizes\": [",
                      absl::StrJoin(schedule.group_sizes, ", "), "], \"global_chunks\": [",
                      absl::StrJoin(schedule.global_chunks, ", "), "], \"local_chunks\": [",
                      absl::StrJoin(schedule.local_chunks, ", "), "], \"partition_bytes\": [",
                      absl::StrJoin(partition_bytes, ", "), "], \"from\": ", plan.tensors[tensor].schedule_from, "}");
}

}  // namespace gleaner::runtime
