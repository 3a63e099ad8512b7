// Builds small plans whose tensors have schedules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/plan.h"

namespace gleaner::testing {

struct ScheduledTensor {
  uint64_t elements = 8;
  uint32_t partitions = 1;  // of nearly equal size; fewer if there are fewer elements
  DataType type = DataType::kFloat32;
  int32_t priority = 0;
  std::optional<uint32_t> schedule = 0;
  uint32_t since = 1;  // epoch of its first plan
  uint64_t schedule_from = 0;
};

struct ScheduledPlan {
  uint32_t workers = 2;
  uint32_t local_ranks = 1;
  uint32_t epoch = 1;
  std::vector<collective::Spec> schedules = {{.algorithm = "ring"}};
  std::vector<ScheduledTensor> tensors = {{}};
};

inline std::shared_ptr<const plan::Plan> build_plan(const ScheduledPlan& spec) {
  auto plan = std::make_shared<plan::Plan>();
  plan->epoch = spec.epoch;
  plan->workers = spec.workers;
  plan->local_ranks = spec.local_ranks;
  plan->members.resize(spec.workers, {.bits_per_second = 1e9, .address = "", .since = 1});
  plan->schedules = spec.schedules;
  plan->first_partition = {0};
  for (const ScheduledTensor& tensor : spec.tensors) {
    const auto id = static_cast<uint32_t>(plan->tensors.size());
    plan->tensors.push_back({.name = absl::StrCat("t", id),
                             .elements = tensor.elements,
                             .type = tensor.type,
                             .priority = tensor.priority,
                             .since = tensor.since,
                             .schedule = tensor.schedule,
                             .schedule_from = tensor.schedule_from});
    const uint64_t count = std::min<uint64_t>(tensor.partitions, tensor.elements);
    const uint64_t size = size_of(tensor.type);
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t begin = tensor.elements * i / count, end = tensor.elements * (i + 1) / count;
      plan->partitions.push_back({.tensor = id,
                                  .owner = static_cast<uint32_t>(i % spec.workers),
                                  .offset = begin * size,
                                  .bytes = static_cast<uint32_t>((end - begin) * size),
                                  .since = tensor.since});
    }
    plan->first_partition.push_back(static_cast<uint32_t>(plan->partitions.size()));
  }
  return plan;
}

}  // namespace gleaner::testing
