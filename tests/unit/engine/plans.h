// Builds small plans for tests of the protocol cores.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/plan/plan.h"

namespace gleaner::testing {

// A tensor, given by the owners of its partitions. Each partition has `bytes` bytes.
struct TensorSpec {
  std::vector<uint32_t> owners;
  uint32_t bytes = 8;
  DataType type = DataType::kFloat32;
  int32_t priority = 0;
  uint32_t since = 1;  // epoch of its first plan
  uint32_t moved = 0;  // epoch since which it has these owners; 0: from the start
  bool accumulates = false;
  uint32_t staleness = plan::kUnbounded;
  std::vector<uint32_t> group;  // none: all workers
};

struct PlanSpec {
  uint32_t workers = 2;
  uint32_t summers = 1;
  uint32_t local_ranks = 1;
  uint32_t epoch = 1;
  std::vector<TensorSpec> tensors;
};

inline std::shared_ptr<const plan::Plan> build_plan(const PlanSpec& spec) {
  auto plan = std::make_shared<plan::Plan>();
  plan->epoch = spec.epoch;
  plan->workers = spec.workers;
  plan->local_ranks = spec.local_ranks;
  plan->members.resize(spec.workers + spec.summers, {.bits_per_second = 1e9, .address = "", .since = 1});
  plan->first_partition = {0};
  for (const TensorSpec& tensor : spec.tensors) {
    const auto id = static_cast<uint32_t>(plan->tensors.size());
    const uint64_t elements = tensor.owners.size() * tensor.bytes / size_of(tensor.type);
    plan->tensors.push_back({absl::StrCat("t", id), elements, tensor.type, tensor.priority, tensor.since,
                             tensor.accumulates, tensor.staleness, std::nullopt, 0, tensor.group});
    const uint32_t owned_since = tensor.moved > 0 ? tensor.moved : tensor.since;
    for (uint32_t i = 0; i < tensor.owners.size(); ++i) {
      plan->partitions.push_back({id, tensor.owners[i], uint64_t{i} * tensor.bytes, tensor.bytes, owned_since});
    }
    plan->first_partition.push_back(static_cast<uint32_t>(plan->partitions.size()));
  }
  return plan;
}

}  // namespace gleaner::testing
