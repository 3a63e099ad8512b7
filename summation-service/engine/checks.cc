#include "summation-service/engine/checks.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "summation-service/engine/groups.h"

namespace gleaner::engine {

std::string describe(const plan::Plan& plan, const wire::PartitionKey& key) {
  return absl::StrCat("tensor ", plan.tensors[key.tensor].name, " partition ", key.partition, " step ", key.step);
}

absl::Status check_exists(const plan::Plan& plan, uint32_t worker, const wire::PartitionKey& key) {
  if (key.tensor >= plan.tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " names tensor ", key.tensor,
                                                   ", but the plan of epoch ", plan.epoch, " has ", plan.tensors.size(),
                                                   " tensors"));
  }
  const plan::Tensor& tensor = plan.tensors[key.tensor];
  if (!tensor.has(worker)) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " names tensor ", tensor.name, ", which ",
                                                   tensor.group.size(), " other workers sum"));
  }
  const auto partitions = plan.partitions_of(key.tensor);
  if (key.partition < partitions.size()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " names ", describe(plan, key),
                                                 ", but the tensor has ", partitions.size(), " partitions"));
}

absl::Status check_owner(const plan::Plan& plan, uint32_t self, uint32_t worker, const wire::PartitionKey& key) {
  const uint32_t owner = plan.partitions_of(key.tensor)[key.partition].owner;
  if (owner == self) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " sent ", describe(plan, key), " to ",
                                                 plan.member_name(self), ", but its owner is ",
                                                 plan.member_name(owner)));
}

absl::Status check_elements(const plan::Plan& plan, uint32_t worker, const wire::Header& header,
                            const Buffer& payload) {
  const wire::PartitionKey key{header.step, header.tensor, header.partition};
  const plan::Tensor& tensor = plan.tensors[header.tensor];
  const plan::Partition& partition = plan.partitions_of(header.tensor)[header.partition];
  const bool is_push = header.type == wire::FrameType::kPush;
  const uint32_t bytes = is_push ? plan.push_bytes(partition) : plan.answer_bytes(partition);
  const DataType type = is_push ? plan.encoding(tensor).contribution : tensor.type;
  if (header.payload_bytes != bytes || payload.size() != bytes) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " sent ", wire::name_of(header.type),
                                                   " of ", payload.size(), " bytes (header: ", header.payload_bytes,
                                                   ") for ", describe(plan, key), ", which has ", bytes, " bytes"));
  }
  if (header.data_type != type) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " sent ", name_of(header.data_type),
                                                   " for ", describe(plan, key), ", which is ", name_of(type)));
  }
  if (tensor.accumulates != (header.op == ReduceOp::kAccumulate)) {
    return absl::InvalidArgumentError(absl::StrCat(
        plan.member_name(worker), " sent op ", static_cast<int>(header.op), " for ", describe(plan, key),
        ", whose tensor is ", tensor.accumulates ? "declared to accumulate" : "not declared to accumulate"));
  }
  if (!is_valid(header.op) || (header.op == ReduceOp::kAverage && tensor.type == DataType::kInt32)) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " sent op ", static_cast<int>(header.op),
                                                   " for ", describe(plan, key), ", but ", name_of(tensor.type),
                                                   " has no such op"));
  }
  return absl::OkStatus();
}

absl::Status check_memory(const plan::Plan& plan, uint32_t self, const MemoryBudget& memory) {
  const std::vector<uint64_t> largest = largest_sums(plan, groups_of(plan), self);
  const uint64_t needed = std::accumulate(largest.begin(), largest.end(), uint64_t{0});
  if (memory.can_ever_fit(needed)) return absl::OkStatus();
  const auto groups = largest.size() - static_cast<size_t>(std::ranges::count(largest, 0));
  return absl::ResourceExhaustedError(
      absl::StrCat("the largest sum of ", groups == 1 ? "" : absl::StrCat("each of ", groups, " groups of "),
                   plan.workers, " workers needs ", needed, " bytes of memory, but the memory cap is ", memory.cap(),
                   ": raise the cap or make partitions smaller"));
}

absl::Status check_keys(const plan::Plan& plan, uint32_t worker, const wire::Header& header, const Buffer& payload) {
  if (payload.size() == header.payload_bytes && payload.size() % sizeof(wire::PartitionKey) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " sent ", wire::name_of(header.type), " of ",
                                                 payload.size(), " bytes (header: ", header.payload_bytes,
                                                 "); expected a multiple of ", sizeof(wire::PartitionKey)));
}

}  // namespace gleaner::engine
