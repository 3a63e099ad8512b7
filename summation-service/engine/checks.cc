#include "summation-service/engine/checks.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gleaner::engine {

std::string describe(const plan::Plan& plan, const wire::PartitionKey& key) {
  return absl::StrCat("tensor ", plan.tensors[key.tensor].name, " partition ", key.partition, " step ", key.step);
}

absl::Status check_key(const plan::Plan& plan, uint32_t self, uint32_t worker, const wire::PartitionKey& key) {
  if (key.tensor >= plan.tensors.size()) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " names tensor ", key.tensor,
                                                   ", but the plan of epoch ", plan.epoch, " has ", plan.tensors.size(),
                                                   " tensors"));
  }
  const auto partitions = plan.partitions_of(key.tensor);
  if (key.partition >= partitions.size()) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " names ", describe(plan, key),
                                                   ", but the tensor has ", partitions.size(), " partitions"));
  }
  if (partitions[key.partition].owner != self) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " sent ", describe(plan, key), " to ",
                                                   plan.member_name(self), ", but its owner is ",
                                                   plan.member_name(partitions[key.partition].owner)));
  }
  return absl::OkStatus();
}

absl::Status check_push(const plan::Plan& plan, uint32_t self, uint32_t worker, const wire::Header& header,
                        const Buffer& payload) {
  const wire::PartitionKey key{header.step, header.tensor, header.partition};
  GLN_RETURN_IF_ERROR(check_key(plan, self, worker, key));
  const plan::Tensor& tensor = plan.tensors[header.tensor];
  const uint32_t bytes = plan.partitions_of(header.tensor)[header.partition].bytes;
  if (header.payload_bytes != bytes || payload.size() != bytes) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " pushed ", payload.size(),
                                                   " bytes (header: ", header.payload_bytes, ") for ",
                                                   describe(plan, key), ", which has ", bytes, " bytes"));
  }
  if (header.data_type != tensor.type) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " pushed ", name_of(header.data_type),
                                                   " for ", describe(plan, key), ", which is ", name_of(tensor.type)));
  }
  if (!is_valid(header.op) || (header.op == ReduceOp::kAverage && tensor.type == DataType::kInt32)) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " wants op ", static_cast<int>(header.op),
                                                   " of ", describe(plan, key), ", which ", name_of(tensor.type),
                                                   " does not have"));
  }
  return absl::OkStatus();
}

absl::Status check_ack_size(const plan::Plan& plan, uint32_t worker, const wire::Header& header,
                            const Buffer& payload) {
  if (payload.empty() || payload.size() != header.payload_bytes || payload.size() % sizeof(wire::PartitionKey) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(plan.member_name(worker), " sent an ACK of ", payload.size(),
                                                   " bytes (header: ", header.payload_bytes,
                                                   "), expected a positive multiple of ", sizeof(wire::PartitionKey)));
  }
  return absl::OkStatus();
}

}  // namespace gleaner::engine
