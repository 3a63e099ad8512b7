#include "common/proto/plan_codec.h"

#include <openssl/evp.h>

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/names.h"
#include "common/base/status_macros.h"

namespace gleaner::proto {
namespace {

absl::StatusOr<plan::Tensor> decode_tensor(const v1::Tensor& message) {
  const auto type = static_cast<DataType>(message.type());
  if (message.type() > 255 || !is_valid(type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", quote(message.name()), " has unknown data type ", message.type()));
  }
  std::optional<plan::Memory> memory;
  if (message.has_memory_type()) {
    if (message.memory_type() > 255 || !is_valid(static_cast<DataType>(message.memory_type()))) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", quote(message.name()), " has unknown data type ",
                                                     message.memory_type(), " in memory"));
    }
    if (message.contribution_type() > 255) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tensor ", quote(message.name()), " has contributions of unknown data type ", message.contribution_type()));
    }
    memory = {.type = static_cast<DataType>(message.memory_type()),
              .elements = message.memory_elements(),
              .seed = message.seed(),
              .feeds_back = message.error_feedback(),
              .momentum = message.momentum()};
    if (message.has_contribution_type()) memory->contribution = static_cast<DataType>(message.contribution_type());
  }
  const uint32_t staleness = message.has_staleness() ? message.staleness() : plan::kUnbounded;
  const auto schedule = message.has_schedule() ? std::optional(message.schedule()) : std::nullopt;
  return plan::Tensor{message.name(),
                      message.elements(),
                      type,
                      message.priority(),
                      message.since(),
                      message.accumulates(),
                      staleness,
                      schedule,
                      message.schedule_from(),
                      {message.group().begin(), message.group().end()},
                      memory};
}

void encode(const collective::Spec& spec, v1::ScheduleSpec* message) {
  message->set_algorithm(spec.algorithm);
  message->mutable_factors()->Assign(spec.factors.begin(), spec.factors.end());
  message->set_radix(spec.radix);
  message->set_blocks(spec.blocks);
  message->mutable_rank_of()->Assign(spec.rank_of.begin(), spec.rank_of.end());
  message->mutable_group_sizes()->Assign(spec.group_sizes.begin(), spec.group_sizes.end());
  message->mutable_global_chunks()->Assign(spec.masters.global.begin(), spec.masters.global.end());
  message->mutable_local_chunks()->Assign(spec.masters.local.begin(), spec.masters.local.end());
}

collective::Spec decode_spec(const v1::ScheduleSpec& message) {
  return {.algorithm = message.algorithm(),
          .factors = {message.factors().begin(), message.factors().end()},
          .radix = message.radix(),
          .blocks = message.blocks(),
          .group_sizes = {message.group_sizes().begin(), message.group_sizes().end()},
          .masters = {{message.global_chunks().begin(), message.global_chunks().end()},
                      {message.local_chunks().begin(), message.local_chunks().end()}},
          .rank_of = {message.rank_of().begin(), message.rank_of().end()}};
}

// Checks that the lengths of the lists agree, so that decode() allocates no more than the message has.
absl::Status check_lists(const v1::Plan& message) {
  if (message.partition_counts_size() != message.tensors_size()) {
    return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", message.partition_counts_size(),
                                                   " partition counts for ", message.tensors_size(), " tensors"));
  }
  const auto& counts = message.partition_counts();
  const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
  if (static_cast<uint64_t>(message.partition_bytes_size()) != total ||
      static_cast<uint64_t>(message.owners_size()) != total ||
      static_cast<uint64_t>(message.owned_since_size()) != total) {
    return absl::InvalidArgumentError(absl::StrCat("invalid plan: ", total, " partitions by their counts, with ",
                                                   message.partition_bytes_size(), " sizes, ", message.owners_size(),
                                                   " owners and ", message.owned_since_size(), " epochs of ownership"));
  }
  return absl::OkStatus();
}

}  // namespace

void encode(const plan::Tensor& tensor, v1::Tensor* message) {
  message->set_name(tensor.name);
  message->set_elements(tensor.elements);
  message->set_type(static_cast<uint32_t>(tensor.type));
  message->set_priority(tensor.priority);
  message->set_since(tensor.since);
  message->set_accumulates(tensor.accumulates);
  if (tensor.staleness != plan::kUnbounded) message->set_staleness(tensor.staleness);
  if (tensor.schedule.has_value()) message->set_schedule(*tensor.schedule);
  message->set_schedule_from(tensor.schedule_from);
  message->mutable_group()->Assign(tensor.group.begin(), tensor.group.end());
  if (!tensor.memory.has_value()) return;
  message->set_memory_type(static_cast<uint32_t>(tensor.memory->type));
  message->set_memory_elements(tensor.memory->elements);
  if (tensor.memory->contribution.has_value()) {
    message->set_contribution_type(static_cast<uint32_t>(*tensor.memory->contribution));
  }
  message->set_seed(tensor.memory->seed);
  message->set_error_feedback(tensor.memory->feeds_back);
  message->set_momentum(tensor.memory->momentum);
}

absl::StatusOr<std::vector<plan::Tensor>> decode(const google::protobuf::RepeatedPtrField<v1::Tensor>& messages) {
  std::vector<plan::Tensor> tensors;
  tensors.reserve(static_cast<size_t>(messages.size()));
  for (const v1::Tensor& message : messages) {
    GLN_ASSIGN_OR_RETURN(plan::Tensor tensor, decode_tensor(message));
    tensors.push_back(std::move(tensor));
  }
  GLN_RETURN_IF_ERROR(plan::validate(std::span<const plan::Tensor>(tensors)));
  return tensors;
}

void encode(const plan::Operation& operation, v1::Operation* message) {
  message->set_tensor(operation.tensor);
  message->set_op(static_cast<uint32_t>(operation.op));
}

absl::StatusOr<std::vector<plan::Operation>> decode(const google::protobuf::RepeatedPtrField<v1::Operation>& messages) {
  std::vector<plan::Operation> operations;
  operations.reserve(static_cast<size_t>(messages.size()));
  for (const v1::Operation& message : messages) {
    GLN_RETURN_IF_ERROR(check_name("a tensor's name", message.tensor(), plan::kMaxTensorNameBytes));
    const auto op = static_cast<ReduceOp>(message.op());
    if (message.op() > 255 || !is_valid(op)) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor '", message.tensor(), "' has unknown operation ", message.op()));
    }
    operations.push_back({message.tensor(), op});
  }
  return operations;
}

void encode(const plan::Plan& plan, v1::Plan* message) {
  message->set_epoch(plan.epoch);
  message->set_workers(plan.workers);
  message->set_local_ranks(plan.local_ranks);
  message->set_in_rank_order(plan.bits == plan::Bits::kRankOrder);
  for (const plan::Member& member : plan.members) {
    v1::Member* encoded = message->add_members();
    encoded->set_bits_per_second(member.bits_per_second);
    encoded->set_address(member.address);
    encoded->set_since(member.since);
    for (const std::string& endpoint : member.endpoints) encoded->add_endpoints(endpoint);
    encoded->set_assumed(member.bandwidth_assumed);
    encoded->set_on_standby(member.on_standby);
  }
  for (const collective::Spec& schedule : plan.schedules) encode(schedule, message->add_schedules());
  for (uint32_t id = 0; id < plan.tensors.size(); ++id) {
    encode(plan.tensors[id], message->add_tensors());
    message->add_partition_counts(static_cast<uint32_t>(plan.partitions_of(id).size()));
  }
  message->mutable_partition_bytes()->Reserve(static_cast<int>(plan.partitions.size()));
  message->mutable_owners()->Reserve(static_cast<int>(plan.partitions.size()));
  message->mutable_owned_since()->Reserve(static_cast<int>(plan.partitions.size()));
  for (const plan::Partition& partition : plan.partitions) {
    message->add_partition_bytes(partition.bytes);
    message->add_owners(partition.owner);
    message->add_owned_since(partition.since);
  }
}

absl::StatusOr<plan::Plan> decode(const v1::Plan& message) {
  GLN_RETURN_IF_ERROR(check_lists(message));
  plan::Plan plan;
  plan.epoch = message.epoch();
  plan.workers = message.workers();
  plan.local_ranks = message.local_ranks();
  plan.bits = message.in_rank_order() ? plan::Bits::kRankOrder : plan::Bits::kSchedule;
  plan.members.reserve(static_cast<size_t>(message.members_size()));
  for (const v1::Member& member : message.members()) {
    plan.members.push_back({member.bits_per_second(),
                            member.address(),
                            member.since(),
                            {member.endpoints().begin(), member.endpoints().end()},
                            member.assumed(),
                            member.on_standby()});
  }
  for (const v1::ScheduleSpec& schedule : message.schedules()) plan.schedules.push_back(decode_spec(schedule));
  GLN_ASSIGN_OR_RETURN(plan.tensors, decode(message.tensors()));
  plan.partitions.reserve(static_cast<size_t>(message.partition_bytes_size()));
  plan.first_partition.reserve(plan.tensors.size() + 1);
  plan.first_partition.push_back(0);
  int next = 0;
  for (uint32_t id = 0; id < plan.tensors.size(); ++id) {
    uint64_t offset = 0;
    for (uint32_t i = 0; i < message.partition_counts(static_cast<int>(id)); ++i, ++next) {
      const uint32_t bytes = message.partition_bytes(next);
      plan.partitions.push_back({id, message.owners(next), offset, bytes, message.owned_since(next)});
      offset += bytes;
    }
    plan.first_partition.push_back(static_cast<uint32_t>(plan.partitions.size()));
  }
  GLN_RETURN_IF_ERROR(plan::validate(plan));
  return plan;
}

std::string digest(const plan::Plan& plan) {
  v1::Plan message;
  encode(plan, &message);
  const std::string text = message.SerializeAsString();
  std::string result(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  EVP_Digest(text.data(), text.size(), reinterpret_cast<unsigned char*>(result.data()), &size, EVP_sha256(), nullptr);
  result.resize(size);
  return result;
}

void encode(const absl::Status& status, v1::Status* message) {
  message->set_code(static_cast<int32_t>(status.code()));
  message->set_message(std::string(status.message()));
}

absl::Status decode(const v1::Status& message) {
  const bool known = message.code() >= 0 && message.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  return {known ? static_cast<absl::StatusCode>(message.code()) : absl::StatusCode::kUnknown, message.message()};
}

}  // namespace gleaner::proto
